// Package checkpoint puts the state of a pipeline on disk so that a crash at any
// moment leaves either the checkpoint before or the new one, never a mixture.
//
// A checkpoint is a directory named after its position. It holds one file for
// each section (Arrow IPC, readable by any Arrow reader) and manifest.json, which
// names every section with its length and xxhash64 and carries its own. Save
// writes everything into a temporary directory, syncs each file, reads all of it
// back and compares, renames the directory into place and syncs the parent; then
// it drops what lies further on, all but the newest three, and after an erasure all
// but the newest two as soon as both are from after it. Load takes the newest one
// whose manifest and sections are as they were written; what is damaged is never
// decoded, and stays until a Save drops it.
//
// The package knows nothing of what the sections mean. It does I/O and so is no
// part of the core; all of it goes through FS, so that tests can fail, tear and
// forget every single operation.
package checkpoint
