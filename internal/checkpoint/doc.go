// Package checkpoint writes the state of a pipeline to disk. After a crash at any moment the
// directory has either the previous checkpoint or the new one, never a mixture.
//
// A checkpoint is a directory named after its position. It has one file for each section (Arrow
// IPC, readable by any Arrow reader) and manifest.json, which lists every section with its length
// and xxhash64 and has a checksum of its own. Save writes everything into a temporary directory,
// syncs each file, reads all of it back and compares, renames the directory into place and syncs
// the parent. Then it removes checkpoints at later positions, all but the newest three, and after
// an erasure all but the newest two once both are from after it. Load takes the newest one with an
// intact manifest and intact sections; damaged data is never decoded, and stays until a Save
// removes it.
//
// The package does not interpret the sections. It does I/O and so is not part of the core. All I/O
// goes through FS, so that tests can make every single operation fail, tear or lose data.
package checkpoint
