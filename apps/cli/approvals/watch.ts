import { type Clock, keepAlive, LruCache, systemClock } from '@plat/core'
import { AdminRefusalError, GatewayUnreachableError } from '../shared/admin-api.ts'
import { currentEnv, type FoundGateway, findGateway, type GatewayOptions } from '../shared/gateway.ts'
import type { HomeEnv } from '../shared/home.ts'
import { type Format, type Output, plain } from '../shared/output.ts'
import {
  type ApprovalView,
  decide,
  getApproval,
  isCut,
  missing,
  pending,
  secondsLeft,
  type Verdict,
  wanted,
  who,
  wholePreview,
  withWholeArguments,
} from './approvals.ts'

/** Polling interval, in milliseconds. */
const LOOK_EVERY_MS = 1_000
/** Keys within this time after an approval appears are ignored, in milliseconds: they were meant for the one before. */
const READ_FIRST_MS = 400
/** Maximum number of approvals whose whole arguments are remembered. */
const WHOLE_MAX = 100
/** Maximum number of remembered approvals. */
const SEEN_MAX = 10_000

/** `plat approvals watch`: until `q` or Ctrl-C. */
export async function approvalsWatch(options: GatewayOptions, output: Output): Promise<number> {
  const gateway = await findGateway(options.dir)
  const source = new GatewaySource(gateway)
  const interactive = process.stdin.isTTY && process.stdout.isTTY && options.output === 'table'
  const ended = Promise.withResolvers<void>()
  process.once('SIGINT', () => ended.resolve())
  process.once('SIGTERM', () => ended.resolve())
  if (!interactive) {
    await look(new Lines(source, { output, format: options.output }), ended.promise)
    return 0
  }
  const line = (text: string) => void process.stdout.write(`\r\x1b[K${text}`)
  const cards = new Cards(source, { line, clock: systemClock })
  const stop = keys((key) => {
    cards.press(key).then((goOn) => (goOn ? undefined : ended.resolve()), ended.reject)
  })
  await look(cards, ended.promise).finally(stop)
  return 0
}

/** Calls back with each key until it is stopped. */
function keys(press: (key: string) => void): () => void {
  const { stdin } = process
  stdin.setRawMode(true).setEncoding('utf8').on('data', press)
  return () => {
    stdin.off('data', press).setRawMode(false).pause()
  }
}

/** Polls until `ended`. An error ends the watch, except an unreachable gateway. */
async function look(watch: { refresh(): Promise<void> }, ended: Promise<void>): Promise<void> {
  let over = false
  const end = ended.finally(() => {
    over = true
  })
  // The clock's timers do not keep the process alive, and here nothing else might.
  const letEnd = keepAlive()
  try {
    while (!over) {
      await watch.refresh()
      await Promise.race([end, new Promise<void>((resolve) => systemClock.after(LOOK_EVERY_MS, resolve))])
    }
    await end
  } finally {
    letEnd()
  }
}

async function fromGateway<T>(gateway: FoundGateway, job: (env: HomeEnv) => Promise<T>): Promise<T> {
  const env = await currentEnv(gateway)
  if (env === null) throw new GatewayUnreachableError(`${gateway.home?.env} is gone; start plat up again`)
  return job(env)
}

/** The source of pending approvals, and the receiver of decisions. */
export interface Source {
  /** Oldest first. */
  list(): Promise<readonly ApprovalView[]>
  decide(id: string, given: { readonly verdict: Verdict; readonly reason: string | undefined }): Promise<ApprovalView>
  /** The state of an approval that no longer waits. */
  get(id: string): Promise<ApprovalView>
}

/** Approvals at a gateway, with their whole arguments where it stores them. */
class GatewaySource implements Source {
  readonly #gateway: FoundGateway
  /** Approvals whose whole arguments were fetched, or refused, by id. */
  readonly #whole = new LruCache<string, ApprovalView>({ maxEntries: WHOLE_MAX })

  constructor(gateway: FoundGateway) {
    this.#gateway = gateway
  }

  list(): Promise<readonly ApprovalView[]> {
    return fromGateway(this.#gateway, async (env) => {
      const waiting: ApprovalView[] = []
      for (const approval of await pending(env)) waiting.push(await this.#withArguments(env, approval))
      return waiting
    })
  }

  decide(id: string, { verdict, reason }: Parameters<Source['decide']>[1]): Promise<ApprovalView> {
    const fetched = this.#whole.get(id)
    // The person has seen the whole arguments.
    const argsSha256 = fetched === undefined || isCut(fetched) ? undefined : (fetched.argsSha256 ?? undefined)
    return fromGateway(this.#gateway, (env) => decide(env, { id, verdict, reason, argsSha256 }))
  }

  get(id: string): Promise<ApprovalView> {
    return fromGateway(this.#gateway, (env) => getApproval(env, id))
  }

  async #withArguments(env: HomeEnv, approval: ApprovalView): Promise<ApprovalView> {
    if (!isCut(approval) || !approval.wholeArguments) return approval
    const fetched = this.#whole.get(approval.id) ?? (await withWholeArguments(env, approval))
    this.#whole.set(approval.id, fetched)
    return { ...approval, preview: fetched.preview }
  }
}

const KEYS: ReadonlyMap<string, Verdict> = new Map([
  ['a', 'approve'],
  ['d', 'deny'],
])
const CTRL_C = '\u0003'
const ESCAPE = '\u001b'
const BACKSPACE = '\u007f'
/** Longest reason, in characters. */
const REASON_MAX_CHARS = 500

/** A decision whose reason is being typed. */
interface Draft {
  readonly verdict: Verdict
  readonly reason: string
}

/** Shows one approval at a time, for a person at a terminal. */
export class Cards {
  readonly #source: Source
  readonly #line: (text: string) => void
  readonly #clock: Clock
  readonly #skipped = new RecentIds()
  #waiting: readonly ApprovalView[] = []
  #current: ApprovalView | null = null
  #shownAt = 0
  #busy = false
  #draft: Draft | null = null

  /** `line` writes over the last line; a line break at its end keeps it. */
  constructor(source: Source, screen: { readonly line: (text: string) => void; readonly clock: Clock }) {
    this.#source = source
    this.#line = screen.line
    this.#clock = screen.clock
  }

  async refresh(): Promise<void> {
    try {
      this.#waiting = await this.#source.list()
    } catch (error) {
      this.#line(failureOf(error))
      return
    }
    await this.#dropDecided()
    this.#draw()
  }

  /** Leaves an approval that no longer waits, with how it ended and who decided. */
  async #dropDecided(): Promise<void> {
    const current = this.#current
    if (current === null || this.#busy || this.#waiting.some(({ id }) => id === current.id)) return
    const ended = await this.#source.get(current.id).catch(() => null)
    if (this.#current !== current) return
    this.#draft = null
    this.#line(`  no longer waiting${ended === null ? '' : `: ${outcomeOf(ended)}`}\n\n`)
    this.#current = null
  }

  /** Returns false if the person quits. */
  async press(key: string): Promise<boolean> {
    if ((key === 'q' && this.#draft === null) || key === CTRL_C) {
      this.#line('\n')
      return false
    }
    const current = this.#current
    if (current === null || this.#busy || this.#clock.now() - this.#shownAt < READ_FIRST_MS) return true
    if (this.#draft !== null) {
      await this.#type(current, this.#draft, key)
      return true
    }
    const verdict = KEYS.get(key)
    if (verdict === 'approve' && isCut(current)) {
      this.#line(
        `  not approved: its arguments are cut; if you know them all: plat approvals approve ${current.id} -args-sha256 <SHA-256>\n`,
      )
      this.#draw()
    } else if (verdict !== undefined) {
      this.#draft = { verdict, reason: '' }
      this.#draw()
    } else if (key === 's') this.#leave(current, 'skipped')
    return true
  }

  /** Adds to the reason; Enter decides, Escape goes back. */
  async #type(approval: ApprovalView, draft: Draft, key: string): Promise<void> {
    if (key.startsWith(ESCAPE)) this.#draft = null
    else if (key === BACKSPACE) this.#draft = { ...draft, reason: draft.reason.slice(0, -1) }
    else {
      const [typed = '', ...lines] = key.split(/[\r\n]/)
      const reason = `${draft.reason}${plain(typed)}`.slice(0, REASON_MAX_CHARS)
      this.#draft = { ...draft, reason }
      if (lines.length > 0) {
        this.#draft = null
        await this.#decide(approval, { verdict: draft.verdict, reason: reason.trim() || undefined })
        return
      }
    }
    this.#draw()
  }

  async #decide(approval: ApprovalView, given: Parameters<Source['decide']>[1]): Promise<void> {
    this.#busy = true
    try {
      const decided = await this.#source.decide(approval.id, given)
      this.#leave(approval, decided.state === 'pending' ? `approved by you; ${missing(decided)}` : outcomeOf(decided))
    } catch (error) {
      if (error instanceof AdminRefusalError) this.#leave(approval, error.message)
      else this.#line(failureOf(error))
    } finally {
      this.#busy = false
    }
  }

  #leave(approval: ApprovalView, how: string): void {
    this.#skipped.add(approval.id)
    this.#current = null
    this.#line(`  ${how}\n\n`)
    this.#draw()
  }

  #draw(): void {
    const open = this.#waiting.filter(({ id }) => !this.#skipped.has(id))
    const [first] = open
    if (this.#current === null && first !== undefined) {
      this.#current = first
      this.#shownAt = this.#clock.now()
      this.#line(`${card(first)}\n`)
    }
    this.#line(this.#current === null ? 'no pending approvals (q quits)' : this.#prompt(this.#current, open.length - 1))
  }

  #prompt(approval: ApprovalView, more: number): string {
    const draft = this.#draft
    if (draft !== null) return `  ${draft.verdict}, because (Enter decides, Escape goes back): ${draft.reason}`
    const rest = more > 0 ? `, ${more} more ${more === 1 ? 'waits' : 'wait'}` : ''
    return `  a approve   d deny   s skip   q quit   ${secondsLeft(approval, this.#clock.now())} s left${rest}`
  }
}

/** Prints one line per new approval, for logs and programs; decide with `approvals approve`. */
export class Lines {
  readonly #source: Source
  readonly #output: Output
  readonly #format: Format
  readonly #seen = new RecentIds()
  #away = false

  constructor(source: Source, to: { readonly output: Output; readonly format: Format }) {
    this.#source = source
    this.#output = to.output
    this.#format = to.format
  }

  async refresh(): Promise<void> {
    try {
      for (const approval of await this.#source.list()) {
        if (this.#seen.has(approval.id)) continue
        this.#seen.add(approval.id)
        this.#output.out(this.#format === 'table' ? line(approval) : JSON.stringify(approval))
      }
      this.#away = false
    } catch (error) {
      if (!this.#away) this.#output.err(failureOf(error))
      this.#away = true
    }
  }
}

/** Ids, as many as a watch needs to remember. */
class RecentIds {
  readonly #ids = new LruCache<string, true>({ maxEntries: SEEN_MAX })

  has(id: string): boolean {
    return this.#ids.get(id) === true
  }

  add(id: string): void {
    this.#ids.set(id, true)
  }
}

/** How an approval ended: its state, who voted, and why. */
function outcomeOf({ state, quorum: { votes } }: ApprovalView): string {
  const by = votes.map((vote) => `${vote.verdict} by ${vote.by}${vote.reason === '' ? '' : ` (${vote.reason})`}`)
  return plain([state, ...by].join('; '))
}

function failureOf(error: unknown): string {
  if (error instanceof GatewayUnreachableError) return `${error.message} (still looking)`
  if (error instanceof AdminRefusalError) return error.message
  throw error
}

function card(approval: ApprovalView): string {
  const { session, user, policy, rule, reason } = approval
  return [
    `${who(approval)} wants ${wanted(approval)}`,
    `  for        ${plain(user ?? 'no user')}, session ${plain(session)}`,
    `  rule       ${plain(`${policy ?? '-'}#${rule ?? '-'}`)}: ${plain(reason)}`,
    `  arguments  ${wholePreview(approval)}`,
    ...(approval.quorum.needed === 1 ? [] : [`  quorum     ${missing(approval)}`]),
  ].join('\n')
}

function line(approval: ApprovalView): string {
  const { id, user, policy, rule } = approval
  const why = plain(`${policy ?? '-'}#${rule ?? '-'}`)
  return [id, who(approval), plain(user ?? '-'), wanted(approval), why, wholePreview(approval)].join('  ')
}
