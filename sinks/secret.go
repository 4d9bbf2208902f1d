package sinks

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

const secretBytesMax = 4096

// ReadSecret reads the file of a secret and returns its text without outer space. Only the owner
// may be able to write the file, and others must not be able to read it. A group may read a file of
// root: Kubernetes mounts secrets that way, systemd passes credentials that way (their access list
// appears as the mode of the group), and administrators give files to a service's group that way.
func ReadSecret(path string, bytesMin int) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	mode := info.Mode().Perm()
	switch readable := mode&0o040 != 0; {
	case mode&0o037 != 0:
		return nil,
			fmt.Errorf("%s has mode %#o, others can read or change it: chmod 600 it", path, mode)
	case readable && !ownedByRoot(info):
		return nil,
			fmt.Errorf("%s has mode %#o, its group can read it: chmod 600 it, or give it to root",
				path, mode)
	case info.Size() > secretBytesMax:
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read",
			path, info.Size(), secretBytesMax)
	}
	data, err := os.ReadFile(path)
	if data = bytes.TrimSpace(data); err == nil && len(data) < bytesMin {
		err = fmt.Errorf(
			"the secret in %s has %d bytes, want %d or more, such as the output of 'openssl rand "+
				"-hex 32'",
			path, len(data), bytesMin)
	}
	return data, err
}

// ownedByRoot reports whether a file is root's.
func ownedByRoot(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0
}
