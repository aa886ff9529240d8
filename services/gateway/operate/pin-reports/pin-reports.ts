import { hash } from 'node:crypto'
import { type Clock, PeriodicTask, reasonOf, Slices } from '@plat/core'
import { type KubernetesApi, KubernetesApiError } from '@plat/kubernetes'
import type { Log } from '@plat/process'

/** Annotation of an MCPServer; each replica writes `plat.dev/pin-report.<replica>`, and the operator joins them. */
const ANNOTATION = 'plat.dev/pin-report'
/** The part of an annotation's name after the slash has at most 63 characters. */
const REPLICA = /^[a-z0-9]([-a-z0-9]{0,49}[a-z0-9])?$/
/** Longest tool name in a report. */
const MAX_NAME_CHARS = 512
/** Bound of the tool names of a report together: all annotations of an object share 256 KiB. */
const MAX_NAMES_CHARS = 8192
/** A report that differs only in `lastSeen` is written again after this time, in milliseconds. */
const LAST_SEEN_STEP_MS = 600_000
/** Number of intervals until a server without an MCPServer is looked up again. */
const ABSENT_INTERVALS = 10

/** The tools of one server, compared with their pins. */
export interface ReportedPins {
  /** `<namespace>/<name>`. */
  readonly id: string
  /** RFC 3339; null: its tools have not been listed since the gateway started. */
  readonly lastSeen: string | null
  readonly observedTools: number
  readonly driftedTools: readonly string[]
  readonly unpinnedTools: number
}

export interface PinReportsParts {
  readonly api: Pick<KubernetesApi, 'ask'>
  readonly everyMs: number
  /** Name of this replica. */
  readonly replica: string
  readonly servers: () => Iterable<string>
  readonly report: (server: string) => ReportedPins | null
  readonly clock: Clock
  readonly log: Log
}

interface Written {
  /** Report without `lastSeen`. */
  readonly content: string
  readonly lastSeen: string
}

/** Reports to the cluster what servers offer: the first report of each, changes, and now and then that nothing changed. */
export class PinReports {
  readonly #parts: PinReportsParts
  readonly #annotation: string
  readonly #rounds: PeriodicTask
  readonly #stop = new AbortController()
  readonly #written = new Map<string, Written>()
  /** Servers without an MCPServer, with the time (epoch milliseconds) until which they are not looked up. */
  readonly #absent = new Map<string, number>()
  #fails = false

  constructor(parts: PinReportsParts) {
    this.#parts = parts
    const { replica, clock, everyMs, log } = parts
    this.#annotation = `${ANNOTATION}.${REPLICA.test(replica) ? replica : hash('sha256', replica).slice(0, 16)}`
    this.#rounds = new PeriodicTask({
      clock,
      everyMs,
      job: () => this.#round(),
      onFault: (error) => log.error({ error: reasonOf(error) }, 'pins of tools could not be reported'),
    })
  }

  /** Writes what is new. Never rejects. */
  write(): Promise<void> {
    return this.#rounds.now()
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#rounds.close()
  }

  async #round(): Promise<void> {
    const { servers, report, clock } = this.#parts
    const now = clock.now()
    const known = new Set(servers())
    for (const server of this.#written.keys()) if (!known.has(server)) this.#written.delete(server)
    for (const [server, until] of this.#absent) if (until <= now || !known.has(server)) this.#absent.delete(server)
    const slices = new Slices()
    let fault: string | null = null
    for (const server of known) {
      if (slices.isOver) await slices.next()
      const found = this.#absent.has(server) ? null : report(server)
      if (found === null || found.lastSeen === null) continue
      const failed = await this.#writeOne(found, found.lastSeen)
      if (failed === null) continue
      fault ??= failed.message
      // The others would fail as well.
      if (isOfAll(failed)) break
    }
    this.#report(fault)
  }

  /** Returns null when the report is written, is no news, or its server has no MCPServer. */
  async #writeOne(found: ReportedPins, lastSeen: string): Promise<KubernetesApiError | null> {
    const { clock, everyMs } = this.#parts
    const content = contentOf(found)
    const before = this.#written.get(found.id)
    const isNews = before?.content !== JSON.stringify(content)
    if (!isNews && Date.parse(lastSeen) - Date.parse(before.lastSeen) < LAST_SEEN_STEP_MS) return null
    const [namespace = '', name = ''] = found.id.split('/')
    try {
      await this.#parts.api.ask({
        method: 'PATCH',
        path: `/apis/plat.dev/v1alpha1/namespaces/${encodeURIComponent(namespace)}/mcpservers/${encodeURIComponent(name)}`,
        contentType: 'application/merge-patch+json',
        body: { metadata: { annotations: { [this.#annotation]: JSON.stringify({ lastSeen, ...content }) } } },
        signal: this.#stop.signal,
      })
    } catch (error) {
      if (!(error instanceof KubernetesApiError)) throw error
      if (error.status !== 404) return error
      this.#absent.set(found.id, clock.now() + ABSENT_INTERVALS * everyMs)
      return null
    }
    this.#written.set(found.id, { content: JSON.stringify(content), lastSeen })
    return null
  }

  /** Logs only the first of consecutive failures. */
  #report(error: string | null): void {
    const fails = error !== null
    if (this.#stop.signal.aborted || fails === this.#fails) return
    this.#fails = fails
    if (fails) this.#parts.log.warn({ error }, 'pins of tools cannot be reported: the status of MCPServers is old')
    else this.#parts.log.info({}, 'pins of tools are reported again')
  }
}

function contentOf({ observedTools, driftedTools, unpinnedTools }: ReportedPins) {
  const drifted: string[] = []
  let chars = 0
  for (const tool of driftedTools) {
    const name = tool.slice(0, MAX_NAME_CHARS)
    chars += name.length
    if (chars > MAX_NAMES_CHARS) break
    drifted.push(name)
  }
  return { observedTools, driftedTools: drifted, unpinnedTools }
}

/** Returns whether the failure applies to every server, not just to this one. */
function isOfAll({ status }: KubernetesApiError): boolean {
  return status === 0 || status === 401 || status === 429 || status >= 500
}
