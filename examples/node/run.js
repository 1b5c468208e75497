#!/usr/bin/env node
// Runs a shell command under sbx, and tells what became of it.
//
// usage: run.js COMMAND [SECONDS]
'use strict';

const { spawn } = require('node:child_process');

// Runs a command with limits. Resolves to what it wrote, and sbx's report.
function run(command, seconds, { profile = 'workspace', maxMemory = '4G', maxProcesses = 500 } = {}) {
  return new Promise((resolve, reject) => {
    const limits = [`--timeout=${seconds}s`, `--max-memory=${maxMemory}`, `--max-processes=${maxProcesses}`];
    const flags = ['--report-fd=3', '--quiet', `--profile=${profile}`, ...limits, '--max-output=1MiB'];
    // The fourth stream is descriptor 3. The command itself does not get it: sbx sees to that.
    const child = spawn('sbx', ['run', ...flags, '--', 'bash', '-c', command], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    const output = [];
    const report = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    child.stdio[3].on('data', (chunk) => report.push(chunk));
    child.on('error', reject);
    // When sbx has ended and all streams are at their ends.
    child.on('close', (status) => {
      const line = Buffer.concat(report).toString();
      if (line === '') reject(new Error(`sbx left no report (status ${status})`));
      else resolve({ output: Buffer.concat(output), report: JSON.parse(line) });
    });
  });
}

// Words and paths are bytes; what is not UTF-8 comes as base64. The command may have chosen them.
function text(value) {
  return typeof value === 'string' ? JSON.stringify(value).slice(1, -1) : value.base64;
}

async function main() {
  const [command, seconds = '60', ...more] = process.argv.slice(2);
  if (command === undefined || more.length > 0) {
    throw new Error('usage: run.js COMMAND [SECONDS]');
  }
  const { output, report } = await run(command, seconds);
  process.stdout.write(output);
  for (const { call, args, process: name, count, suggestion } of report.violations) {
    const flags = suggestion ? suggestion.flags.map(text).join(' ') : 'nothing';
    console.log(`refused: ${call}(${args}) in ${text(name)}, ${count} times; allowed by: ${flags}`);
  }
  if (report.cause === 'timeout') {
    console.log(`timeout: ended after ${(report.duration_ms / 1000).toFixed(1)} s`);
  } else if (['refused', 'not-found', 'not-executable'].includes(report.cause)) {
    console.log(`not run: ${report.error}`);
  } else {
    console.log(`${report.cause}: status ${report.exit_status}`);
  }
  process.exitCode = report.exit_status;
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
