// A static program of a runtime that never uses the system's loader: it makes the file "mark", then tries to run a
// program.
package main

import (
	"fmt"
	"os"
	"os/exec"
)

func main() {
	if err := os.WriteFile("mark", []byte("made\n"), 0o644); err != nil {
		fmt.Println("create:", err)
	} else {
		fmt.Println("create: done")
	}
	out, err := exec.Command("/bin/echo", "ran").Output()
	if err != nil {
		fmt.Println("exec:", err)
		return
	}
	fmt.Print("exec: ", string(out))
}
