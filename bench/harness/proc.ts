import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** A measured server, in a separate process. */
export interface Server {
  readonly pid: number
  readonly url: string
  readonly port: number
  /** Milliseconds from the start of the process to the line that names its address. */
  readonly listeningMs: number
  /** Microseconds of user and system time of the process and all below it, so far. */
  cpuMicros(): number
  /** Resident bytes of the process and all below it. */
  rssBytes(): number
  stop(): Promise<void>
}

export interface ServerStart {
  /** Names the log file. */
  readonly name: string
  /** Arguments of this very Node. */
  readonly args: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  /** Holds the log file, which the server's address is read from. */
  readonly dir: string
  /** Finds address and port in the log; default: the first `"url":"http://…"`. */
  readonly address?: RegExp
}

/** Milliseconds until a server must have named its address, on the slowest machine. */
const START_MS = 60_000
/** Milliseconds between two looks into its log. */
const LOOK_MS = 5
/** Milliseconds from SIGTERM to SIGKILL: a server that is slow to write its last records is let. */
const STOP_MS = 30_000
/** The kernel counts process time in hundredths of a second on every Linux that Node supports. */
const MICROS_PER_TICK = 10_000

const ADDRESS = /"url":"(http:\/\/[^"]+:(\d+))"/

/** Starts a server and waits for the first line that says `"url":"http://…"`: the log line of plat's services, and what our own servers print. */
export async function startServer({ name, args, env, dir, address = ADDRESS }: ServerStart): Promise<Server> {
  mkdirSync(dir, { recursive: true })
  const logPath = path.join(dir, `${name}.log`)
  const log = openSync(logPath, 'w')
  const began = performance.now()
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ['ignore', log, log] })
  closeSync(log)
  try {
    const [url, port] = await addressIn(child, logPath, address)
    const pid = child.pid ?? 0
    return {
      pid,
      url,
      port,
      listeningMs: performance.now() - began,
      cpuMicros: () => sum(tree(pid), cpuOf),
      rssBytes: () => sum(tree(pid), rssOf),
      stop: () => stop(child),
    }
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
}

async function addressIn(child: ChildProcess, logPath: string, address: RegExp): Promise<[url: string, port: number]> {
  const giveUpAt = performance.now() + START_MS
  while (child.exitCode === null && performance.now() < giveUpAt) {
    const match = address.exec(readFileSync(logPath, 'utf8'))
    if (match !== null) return [match[1] ?? '', Number(match[2])]
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
  throw new Error(`${path.basename(logPath)} does not listen: ${readFileSync(logPath, 'utf8').slice(0, 2000)}`)
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const force = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  await gone
  clearTimeout(force)
}

/** The process and all that it started, directly or not. */
function tree(root: number): number[] {
  const children = new Map<number, number[]>()
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry)
    if (!Number.isInteger(pid)) continue
    const parent = Number(statOf(pid)?.[1] ?? -1)
    children.set(parent, [...(children.get(parent) ?? []), pid])
  }
  const found = [root]
  for (const pid of found) found.push(...(children.get(pid) ?? []))
  return found
}

/** Fields of /proc/<pid>/stat from the third on (proc(5)); null when the process is gone. The name before them may hold spaces. */
function statOf(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return null
  }
}

/** utime and stime, fields 14 and 15. */
function cpuOf(pid: number): number {
  const stat = statOf(pid)
  return stat === null ? 0 : (Number(stat[11]) + Number(stat[12])) * MICROS_PER_TICK
}

function rssOf(pid: number): number {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return Number(kilobytes?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

function sum(pids: readonly number[], of: (pid: number) => number): number {
  return pids.reduce((total, pid) => total + of(pid), 0)
}
