package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// static holds the page: plain files, no build step, nothing from elsewhere.
//
//go:embed static
var static embed.FS

// asset is one file of the page.
type asset struct {
	body              []byte
	contentType, etag string
}

// contentTypes by extension; a file with another is not served.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// assets are the files by path; "/" is the page.
var assets = readAssets()

func readAssets() map[string]asset {
	out := map[string]asset{}
	err := fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		contentType, ok := contentTypes[path.Ext(name)]
		if !ok {
			return nil
		}
		body, err := static.ReadFile(name)
		digest := sha256.Sum256(body)
		out[strings.TrimPrefix(name, "static")] = asset{body, contentType, `"` + hex.EncodeToString(digest[:16]) + `"`}
		return err
	})
	if err != nil { // the files are in the program
		panic("web: " + err.Error())
	}
	out["/"] = out["/index.html"]
	return out
}

// serveStatic answers with one of our files. Browsers ask again each time, and
// are told when they have it already.
func serveStatic(w http.ResponseWriter, r *http.Request) {
	a, ok := assets[r.URL.Path]
	if !ok {
		fail(w, http.StatusNotFound, "there is nothing here")
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", a.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
}
