//go:build tools

// Package seaweedfs names the program that is built from here.
package seaweedfs

import _ "github.com/seaweedfs/seaweedfs/weed"
