import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { CodeRequest, CodeResult } from './sandbox-daemon.ts'

/** Characters of output that are kept of each stream. */
const MAX_OUTPUT = 1024 * 1024

/** A new root with the system's programs, no network, no other processes, and a file system in memory. */
const ISOLATION = [
  ...['--unshare-all', '--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--clearenv'],
  ...['--setenv', 'PATH', '/usr/bin:/bin', '--setenv', 'HOME', '/tmp', '--ro-bind', '/usr', '/usr'],
  ...['bin', 'lib', 'lib64'].flatMap((name) =>
    existsSync(`/usr/${name}`) ? ['--symlink', `usr/${name}`, `/${name}`] : [],
  ),
  ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--chdir', '/tmp'],
]

/** Why code cannot be run under bubblewrap; null if it can. */
export function bubblewrapProblem(): string | null {
  const { status, error, stderr } = spawnSync('bwrap', [...ISOLATION, 'true'], { encoding: 'utf8' })
  if (error !== undefined) return 'bubblewrap (bwrap) is not installed'
  return status === 0 ? null : stderr.trim()
}

/** Runs a shell script under bubblewrap; the whole sandbox ends with the time limit or the signal. */
export function runInBubblewrap({ code, timeoutSeconds, signal }: CodeRequest): Promise<CodeResult> {
  const child = spawn('bwrap', [...ISOLATION, 'sh', '-c', code], { stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8')
    child[name].on('data', (text: string) => {
      output[name] = (output[name] + text).slice(0, MAX_OUTPUT)
    })
  }
  const kill = () => void child.kill('SIGKILL')
  const timer = setTimeout(kill, timeoutSeconds * 1000)
  signal.addEventListener('abort', kill, { once: true })
  const { promise, resolve, reject } = Promise.withResolvers<CodeResult>()
  child.once('error', reject)
  child.once('close', (exitCode) => {
    clearTimeout(timer)
    signal.removeEventListener('abort', kill)
    resolve({ ...output, exitCode: exitCode ?? 137 })
  })
  return promise
}
