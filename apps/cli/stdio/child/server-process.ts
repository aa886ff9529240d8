import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { type Clock, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { ServerSpec } from '../protocol.ts'
import { LineBudget, LineReader, type LineReceiver } from './lines.ts'
import { StderrLog } from './stderr.ts'

/** Longest message of a server, in bytes: as much as the gateway accepts in one response. */
export const LINE_MAX_BYTES = 32 * 1024 * 1024

/** Of all processes of this bridge. */
const lineBudget = new LineBudget()

/** How long a process may take to end after its stdin was closed, in milliseconds. */
const AFTER_STDIN_MS = 2_000
/** How long it may take after SIGTERM, in milliseconds. */
const AFTER_TERM_MS = 2_000
/** How long output of a process that has ended is read, in milliseconds: a process it left behind may hold the pipe open. */
const REST_OF_OUTPUT_MS = 500

export interface ProcessOwner extends LineReceiver {
  /**
   * Called once, after the last line. `how` is `exit code 1`, `signal SIGKILL`, or why it could not be started; `lastError` its last line on stderr,
   * null if there is none.
   */
  ended(how: string, lastError: string | null): void
}

/** A running server: writes lines to its stdin, reads lines from its stdout, and logs its stderr. It leads its own process group. */
export class ServerProcess {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #clock: Clock
  readonly #log: Log
  readonly #exited = Promise.withResolvers<void>()
  #isOver = false
  #isStopping = false

  constructor(spec: ServerSpec, owner: ProcessOwner, { clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock
    this.#log = log
    const [file = '', ...args] = spec.argv
    this.#child = spawn(file, args, { cwd: spec.cwd, env: spec.env, stdio: 'pipe', detached: true })
    const { stdin, stdout, stderr } = this.#child
    const reader = new LineReader(LINE_MAX_BYTES, owner, lineBudget)
    const secrets = spec.secrets.map((name) => spec.env[name] ?? '')
    const errors = new StderrLog({ log, clock, secrets })
    stdout.on('data', (chunk: Uint8Array) => reader.push(chunk)).on('error', ignored)
    stderr.on('data', (chunk: Uint8Array) => errors.push(chunk)).on('error', ignored)
    // A process that does not read ends with an error here; its exit says why.
    stdin.on('error', ignored)
    let how = 'an unknown reason'
    const finish = () => {
      if (this.#isOver) return
      this.#isOver = true
      reader.end()
      errors.end()
      for (const stream of [stdin, stdout, stderr]) stream.destroy()
      this.#exited.resolve()
      owner.ended(how, errors.lastLine)
    }
    this.#child.once('error', (error) => {
      how = reasonOf(error)
      if (this.#child.pid === undefined) finish()
    })
    this.#child.once('exit', (code, signal) => {
      how = signal === null ? `exit code ${code}` : `signal ${signal}`
      // Ends processes that it left behind in its group.
      this.#signal('SIGKILL')
      clock.after(REST_OF_OUTPUT_MS, finish)
    })
    this.#child.once('close', finish)
  }

  /** Null if the process could not be started. */
  get pid(): number | null {
    return this.#child.pid ?? null
  }

  /** Bytes that the process has not read yet. */
  get backlog(): number {
    return this.#child.stdin.writableLength
  }

  /** The bridge has begun to stop it. */
  get isStopping(): boolean {
    return this.#isStopping
  }

  /** Writes one message and its line end. */
  write(line: Uint8Array): void {
    const { stdin } = this.#child
    if (!stdin.writable) return
    stdin.cork()
    stdin.write(line)
    stdin.write('\n')
    stdin.uncork()
  }

  /** Stops reading: the process waits when its pipe is full. */
  pause(): void {
    this.#child.stdout.pause()
  }

  resume(): void {
    this.#child.stdout.resume()
  }

  /** Closes stdin, then sends SIGTERM, then SIGKILL to the process group. Resolves when the process has ended. */
  async stop(): Promise<void> {
    if (!this.#isStopping && !this.#isOver) {
      this.#isStopping = true
      this.#child.stdout.resume()
      this.#child.stdin.end()
      const cancels = [
        this.#clock.after(AFTER_STDIN_MS, () => this.#signal('SIGTERM')),
        this.#clock.after(AFTER_STDIN_MS + AFTER_TERM_MS, () => {
          this.#log.warn({ pid: this.pid }, 'the server ignored SIGTERM and is killed')
          this.#signal('SIGKILL')
        }),
      ]
      void this.#exited.promise.then(() => {
        for (const cancel of cancels) cancel()
      })
    }
    await this.#exited.promise
  }

  #signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    const { pid } = this
    if (pid === null) return
    try {
      process.kill(-pid, signal)
    } catch {
      // The group has no processes any more.
    }
  }
}

function ignored(): void {}
