// Runs a shell command under sbx, and tells what became of it.
//
// usage: run COMMAND [SECONDS]
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Text is a word or a path: bytes, which come as base64 where they are not UTF-8. The command may have chosen them.
type Text struct{ shown string }

func (t *Text) UnmarshalJSON(data []byte) error {
	var encoded struct {
		Base64 string `json:"base64"`
	}
	if json.Unmarshal(data, &t.shown) == nil {
		quoted := strconv.QuoteToASCII(t.shown)
		t.shown = quoted[1 : len(quoted)-1]
		return nil
	}
	err := json.Unmarshal(data, &encoded)
	t.shown = encoded.Base64
	return err
}

// Report is the part of sbx's report that is used here.
type Report struct {
	Cause      string  `json:"cause"`
	ExitStatus int     `json:"exit_status"`
	DurationMs float64 `json:"duration_ms"`
	Error      string  `json:"error"`
	Violations []struct {
		Call       string `json:"call"`
		Args       string `json:"args"`
		Process    Text   `json:"process"`
		Count      uint64 `json:"count"`
		Suggestion *struct {
			Flags []Text `json:"flags"`
		} `json:"suggestion"`
	} `json:"violations"`
}

// Limits of a command, as sbx spells them.
type Limits struct{ Time, Memory, Processes string }

// Runs a command with limits. Returns what it wrote, and sbx's report.
func run(command, profile string, limits Limits) ([]byte, *Report, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer reader.Close()
	cmd := exec.Command("sbx", "run", "--report-fd=3", "--quiet", "--profile="+profile,
		"--timeout="+limits.Time, "--max-memory="+limits.Memory, "--max-processes="+limits.Processes,
		"--max-output=1MiB", "--", "bash", "-c", command)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	// The first of them is descriptor 3. The command itself does not get it: sbx sees to that.
	cmd.ExtraFiles = []*os.File{writer}
	err = cmd.Start()
	// Only sbx has it now, so its end is the end of the report.
	writer.Close()
	if err != nil {
		return nil, nil, err
	}
	line, readError := io.ReadAll(reader)
	var exit *exec.ExitError
	// The status is in the report too.
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return nil, nil, err
	}
	if readError != nil {
		return nil, nil, readError
	}
	if len(line) == 0 {
		return nil, nil, fmt.Errorf("sbx left no report (%v)", cmd.ProcessState)
	}
	report := new(Report)
	return output.Bytes(), report, json.Unmarshal(line, report)
}

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: run COMMAND [SECONDS]")
		os.Exit(1)
	}
	seconds := "60"
	if len(os.Args) == 3 {
		seconds = os.Args[2]
	}
	output, report, err := run(os.Args[1], "workspace", Limits{Time: seconds + "s", Memory: "4G", Processes: "500"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Stdout.Write(output)
	for _, violation := range report.Violations {
		flags := []string{"nothing"}
		if violation.Suggestion != nil {
			flags = nil
			for _, flag := range violation.Suggestion.Flags {
				flags = append(flags, flag.shown)
			}
		}
		fmt.Printf("refused: %s(%s) in %s, %d times; allowed by: %s\n", violation.Call, violation.Args,
			violation.Process.shown, violation.Count, strings.Join(flags, " "))
	}
	switch report.Cause {
	case "timeout":
		fmt.Printf("timeout: ended after %.1f s\n", report.DurationMs/1000)
	case "refused", "not-found", "not-executable":
		fmt.Printf("not run: %s\n", report.Error)
	default:
		fmt.Printf("%s: status %d\n", report.Cause, report.ExitStatus)
	}
	os.Exit(report.ExitStatus)
}
