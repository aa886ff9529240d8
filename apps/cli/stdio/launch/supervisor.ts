import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Backoff, type Clock, type Ids, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { Manifest } from '@plat/resources'
import type { PlatFolder } from '../../shared/home.ts'
import { LineReader } from '../child/lines.ts'
import { type BridgeConfig, type BridgeEvent, readBridgeEvent, type ServerSpec } from '../protocol.ts'
import { Announcements } from './announcements.ts'
import { Sandbox } from './sandbox.ts'
import { makeSocketFolder, usableSocketPath } from './socket.ts'
import { specsOf } from './specs.ts'

const BRIDGE_PROGRAM = new URL('../program.ts', import.meta.url)
/** How often resources and Secrets are looked at, in milliseconds. */
const LOOK_EVERY_MS = 1000
/** Longest event, in bytes. */
const EVENT_MAX_BYTES = 64 * 1024
/** How long the bridge may take to stop its servers, in milliseconds: longer than the most stubborn one takes. */
const STOP_MS = 10_000
/** How long `plat up` waits for the bridge, in milliseconds; afterwards calls wait for it. */
const START_MS = 10_000
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 30_000

export interface StdioOptions {
  readonly home: PlatFolder
  /** MCPServers as last rendered; the same array as long as nothing has changed. */
  servers(): readonly Manifest<'MCPServer'>[]
  readonly logFile: string | null
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Prints a line for the person who runs `plat up`. */
  announce(line: string): void
}

/** Runs the stdio bridge while there are servers for it, and passes it each change of the resources. */
export class StdioSupervisor {
  /** Path of the bridge's socket. */
  readonly socket: string
  readonly #options: StdioOptions
  readonly #sandbox: Sandbox
  readonly #announcements: Announcements
  readonly #backoff: Backoff
  /** Process groups of servers: they are killed if the bridge dies before it could. */
  readonly #pids = new Set<number>()
  readonly #ready = Promise.withResolvers<void>()
  #isListening = false
  /** Calls that wait for the bridge. */
  readonly #waiting = new Set<() => void>()
  /** Why the bridge last ended; null: it has not ended yet. */
  #problem: string | null = null
  #bridge: ChildProcess | null = null
  #sent = ''
  #failures = 0
  #notBefore = 0
  #looking: Promise<void> | null = null
  #stopLooking: () => void = () => {}
  #isStopped = false

  constructor(options: StdioOptions) {
    this.#options = options
    this.socket = usableSocketPath(options.home.stdioSocket)
    this.#sandbox = new Sandbox({ ...options.home, stdioSocket: this.socket })
    this.#announcements = new Announcements(options.announce, options.clock)
    this.#backoff = new Backoff({ firstMs: FIRST_PAUSE_MS, maxMs: LONGEST_PAUSE_MS, ids: options.ids })
  }

  /**
   * Looks at the resources now, and again every second. Resolves when the bridge listens, if it is needed. Throws CommandError if the socket has no
   * private folder.
   */
  async start(): Promise<void> {
    makeSocketFolder(this.socket)
    await this.#look()
    if (this.#bridge !== null) {
      const cancel = this.#options.clock.after(START_MS, this.#ready.resolve)
      await this.#ready.promise
      cancel()
    }
    this.#stopLooking = this.#options.clock.every(LOOK_EVERY_MS, () => {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = null
      })
    })
  }

  /** Options of the gateway that calls the bridge. */
  get forGateway() {
    return { stdioSocket: this.socket, stdioReady: (ms: number) => this.ready(ms) }
  }

  /** Returns null if the bridge listens; otherwise resolves to null once it does, or after `ms` to why it does not. Never rejects. */
  ready(ms: number): null | Promise<string | null> {
    if (this.#isListening) return null
    const { promise, resolve } = Promise.withResolvers<string | null>()
    const listens = () => resolve(null)
    this.#waiting.add(listens)
    const late = () => resolve(this.#problem === null ? 'it is still starting' : `it ended: ${this.#problem}`)
    const cancel = this.#options.clock.after(ms, late)
    return promise.finally(() => {
      cancel()
      this.#waiting.delete(listens)
    })
  }

  /** Stops the bridge and its servers. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stopLooking()
    await this.#looking
    const bridge = this.#bridge
    if (bridge === null) return
    const exited = once(bridge, 'exit').catch(() => {})
    const cancel = this.#options.clock.after(STOP_MS, () => bridge.kill('SIGKILL'))
    bridge.stdin?.end()
    await exited
    cancel()
  }

  async #look(): Promise<void> {
    const { home, env, log, clock } = this.#options
    try {
      const specs = await specsOf(this.#options.servers(), { home, sandbox: this.#sandbox, env })
      if (this.#isStopped || (specs.length === 0 && this.#bridge === null)) return
      if (this.#bridge === null && clock.monotonic() < this.#notBefore) return
      const bridge = this.#bridge ?? this.#open()
      this.#send(bridge, specs)
    } catch (error) {
      log.error({ error: reasonOf(error) }, 'stdio servers could not be configured')
    }
  }

  #send(bridge: ChildProcess, servers: ServerSpec[]): void {
    const config: BridgeConfig = { socket: this.socket, log: this.#options.logFile, servers }
    const text = JSON.stringify(config)
    if (text === this.#sent) return
    this.#sent = text
    bridge.stdin?.write(`${text}\n`)
    this.#announcements.configured(servers)
  }

  #open(): ChildProcess {
    const { env, log, announce } = this.#options
    const own = { PATH: env.PATH ?? '', ...(env.HOME !== undefined && { HOME: env.HOME }) }
    const file = fileURLToPath(BRIDGE_PROGRAM)
    const bridge = spawn(process.execPath, [file], { env: own, cwd: dirname(file), stdio: ['pipe', 'pipe', 'pipe'] })
    this.#bridge = bridge
    const { obstacle } = this.#sandbox
    const keys = dirname(this.#options.home.env)
    if (obstacle !== null)
      announce(`stdio servers are not isolated: they run as you and can read plat's keys in ${keys}: ${obstacle}`)
    const events = new LineReader(EVENT_MAX_BYTES, {
      line: (bytes) => this.#event(readBridgeEvent(bytes)),
      tooLong: () => log.error({}, 'the stdio bridge wrote an event that is too long'),
    })
    let problem = ''
    bridge.stdout.on('data', (chunk: Buffer) => events.push(chunk))
    bridge.stderr.setEncoding('utf8').on('data', (text: string) => {
      problem = `${problem}${text}`.slice(-EVENT_MAX_BYTES)
    })
    bridge.stdin.on('error', () => {})
    bridge.once('error', (error) => this.#exited(bridge, reasonOf(error)))
    bridge.once('exit', (code, signal) =>
      this.#exited(bridge, `${signal ?? `exit code ${code}`} ${problem.trim()}`.trim()),
    )
    return bridge
  }

  #event(event: BridgeEvent | null): void {
    if (event === null) {
      this.#options.log.error({}, 'the stdio bridge wrote something that is not an event')
      return
    }
    if (event.event === 'ready') this.#listens()
    if (event.event === 'started') this.#pids.add(event.pid)
    if (event.event === 'ended') this.#pids.delete(event.pid)
    this.#announcements.happened(event)
  }

  #listens(): void {
    this.#isListening = true
    this.#ready.resolve()
    for (const listens of this.#waiting) listens()
  }

  #exited(bridge: ChildProcess, how: string): void {
    if (this.#bridge !== bridge) return
    this.#bridge = null
    this.#isListening = false
    this.#problem = how
    this.#sent = ''
    this.#ready.resolve()
    // An orderly stop would have ended them.
    for (const pid of this.#pids) killGroup(pid)
    this.#pids.clear()
    if (this.#isStopped) return
    const pauseMs = this.#backoff.pauseMs(this.#failures)
    this.#failures++
    this.#notBefore = this.#options.clock.monotonic() + pauseMs
    this.#options.log.error({ how, pauseMs }, 'the stdio bridge ended unexpectedly')
    this.#options.announce(`the stdio bridge ended (${how}); it is started again in ${Math.ceil(pauseMs / 1000)} s`)
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The group is gone.
  }
}
