package graphstore

// ClassesOf returns the number of classes of a snapshot, from the verified bytes
// of its meta table: what the Config of Load must say.
func ClassesOf(meta []byte) (int, error) {
	classes := 0
	err := readTable(MetaTable, meta, func(rows []vector) error {
		for _, v := range rows {
			if v.name == "classes" && v.kind == u32Vector && v.rows == 1 {
				classes = int(elements[uint32](v.data)[0])
			}
		}
		return nil
	})
	if err == nil && classes == 0 {
		err = errTable
	}
	return classes, err
}
