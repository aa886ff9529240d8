import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import { CommandError } from '../shared/output.ts'
import { FILTER_FD, INFO_FD, type Isolation, programPid } from './isolation.ts'
import { terminalFilter } from './terminal-filter.ts'

/**
 * Starts the program on this terminal and waits for its end. Returns its exit code; a signal that ended it becomes 128 plus its
 * number, as in shells.
 * @throws CommandError with exit code 127 if the program cannot be started.
 */
export async function runProgram(
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  isolation: Isolation,
): Promise<number> {
  const [file = '', ...args] = isolation.wrap(command)
  const pipes: 'pipe'[] = isolation.isolated ? ['pipe', 'pipe'] : []
  const child = spawn(file, args, { env, stdio: ['inherit', 'inherit', 'inherit', ...pipes] })
  const target = isolation.isolated ? isolatedProgram(child) : { kill: (signal: NodeJS.Signals) => child.kill(signal) }
  const pass = (signal: NodeJS.Signals) => void target.kill(signal)
  const ignore = () => {} // Ctrl-C reaches the program by the terminal; it decides, this process waits.
  process.on('SIGTERM', pass).on('SIGHUP', pass).on('SIGINT', ignore)
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', () =>
        reject(new CommandError(`cannot run ${command[0]}: is it installed and on the PATH?`, 127)),
      )
      child.once('exit', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])))
    })
  } finally {
    process.off('SIGTERM', pass).off('SIGHUP', pass).off('SIGINT', ignore)
  }
}

/** Hands the filter to bubblewrap and reads which process the program became, for bubblewrap itself passes no signals on. */
function isolatedProgram(bwrap: ChildProcess): { kill(signal: NodeJS.Signals): void } {
  const info = readableOf(bwrap.stdio[INFO_FD])
  const filter = writableOf(bwrap.stdio[FILTER_FD])
  let report = ''
  info?.setEncoding('utf8').on('data', (text: string) => {
    report += text
  })
  // bubblewrap may have ended before it read the filter; its exit says why.
  filter?.on('error', () => {}).end(terminalFilter(process.arch) ?? '')
  return {
    kill(signal) {
      const pid = programPid(report)
      if (pid === null) bwrap.kill('SIGKILL')
      else process.kill(pid, signal)
    },
  }
}

function readableOf(stream: Readable | Writable | null | undefined): Readable | null {
  return stream !== null && stream !== undefined && 'setEncoding' in stream ? stream : null
}

function writableOf(stream: Readable | Writable | null | undefined): Writable | null {
  return stream !== null && stream !== undefined && 'end' in stream ? stream : null
}
