import { type Clock, ExpiringMap } from '@plat/core'
import { type Call, type Denial, deny, isDenial, type Snapshot, type ToolPin } from '../../call/index.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import { type PinBook, SERVERS_MAX } from './book.ts'
import { NO_DIGEST, offeredTools } from './definition.ts'
import { type PinRules, pinDecision } from './rules.ts'

/** A call with a resolved server. */
export type PinnedCall = Call<'identity' | 'target'>

/** Lists all tools of the call's server (all pages) on the caller's session. */
export type ListTools = (call: PinnedCall) => Promise<readonly unknown[] | Denial>

export interface PinStageOptions {
  readonly book: PinBook
  readonly clock: Clock
  /** Returns the rules of a server by `target.key`, or null for mode `off`. */
  readonly rules: (snapshot: Snapshot, server: string) => PinRules | null
  readonly list: ListTools
  /** docs/spec/gateway.md: `pinCacheSeconds`, in milliseconds. At most one list of a server is fetched in this time. */
  readonly cacheMs: number
  /** Called when a list that no call waits for cannot be fetched. */
  readonly onFault: (error: unknown) => void
  /** Called for each call that is refused or needs an approval because of its tool's definition. */
  readonly onRefused: (server: string, event: 'denied' | 'held') => void
}

/** Facts of a call without rules. */
const NO_PIN = { pin: null } as const

/**
 * The stage `pins`: admits a call only while the tool's definition is the accepted one (docs/spec/crds.md, `toolPins`). Mode `learn`
 * neither waits nor refuses, but for tools of which a person rejected a definition. Mode `enforce` first fetches a definition that was not offered lately,
 * so that callers that never list tools cannot bypass the check.
 */
export function createPinStage(options: PinStageOptions): Stage<'pins', 'identity' | 'target', 'pin'> {
  const { book, rules, cacheMs, onRefused } = options
  const fetches = new Fetches(options)
  const judged = (call: PinnedCall, found: PinRules, digest: string | null) => {
    const { server, key, tool } = call.facts.target
    const offered = { name: tool ?? '', digest: digest ?? NO_DIGEST }
    const standing = digest === null ? 'unpinned' : book.standing(key, found, offered)
    const isRejected = book.isRejected(key, offered)
    const treated = pinDecision(found, standing, isRejected)
    if (treated !== 'pass') onRefused(server, treated === 'refuse' ? 'denied' : 'held')
    if (treated === 'refuse') {
      const why = isRejected ? 'a person rejected the definition that is offered' : standing
      return deny('tool_pin_mismatch', `${server}/${tool} does not match its pins: ${why}`)
    }
    // In mode `learn` the definition may become known between a call and its repetition, so approvals are not bound to it.
    const bound = found.mode === 'enforce' ? digest : null
    return { pin: { digest: bound, mode: found.mode, approve: treated === 'approve' } satisfies ToolPin }
  }
  return stage({
    name: 'pins',
    needs: ['identity', 'target'],
    gives: ['pin'],
    skipped: NO_PIN,
    admit(call) {
      const { key, tool } = call.facts.target
      const found = tool === null ? null : rules(call.snapshot, key)
      if (found === null || tool === null) return NO_PIN
      const digest = book.lastSeen(key, tool, cacheMs)
      if (digest !== null) return judged(call, found, digest)
      const isNeeded = found.mode === 'enforce' || book.rejectedCount(key, tool) > 0
      const fetched = fetches.fetch(call, found, isNeeded)
      if (!isNeeded) {
        fetched.catch(options.onFault)
        return judged(call, found, null)
      }
      return fetched.then((fault) => fault ?? judged(call, found, book.lastSeen(key, tool, Number.POSITIVE_INFINITY)))
    },
  })
}

/** Ongoing and recent fetches of lists: one at a time per server, and one per `cacheMs`. */
class Fetches {
  readonly #options: PinStageOptions
  readonly #running = new Map<string, Promise<Denial | null>>()
  readonly #lately: ExpiringMap<'listed' | 'failed'>

  constructor(options: PinStageOptions) {
    this.#options = options
    this.#lately = new ExpiringMap({ clock: options.clock, cap: SERVERS_MAX })
  }

  /** Returns the reason why the tools cannot be known, or null. */
  fetch(call: PinnedCall, rules: PinRules, isNeeded: boolean): Promise<Denial | null> {
    const { key } = call.facts.target
    const running = this.#running.get(key)
    if (running !== undefined) return running
    const lately = this.#lately.get(key)
    // If a call depends on the list, a failure is not cached.
    if (lately === 'listed' || (lately === 'failed' && !isNeeded)) return FETCHED
    const fetched = this.#fetch(call, rules).finally(() => this.#running.delete(key))
    this.#running.set(key, fetched)
    return fetched
  }

  async #fetch(call: PinnedCall, rules: PinRules): Promise<Denial | null> {
    const { book, list, clock, cacheMs } = this.#options
    const { key } = call.facts.target
    const tools = await list(call)
    const failed = isDenial(tools)
    if (!failed) book.observe(key, rules, await offeredTools(tools))
    this.#lately.take(key)
    this.#lately.insert(key, failed ? 'failed' : 'listed', clock.now() + cacheMs)
    return failed ? tools : null
  }
}

const FETCHED = Promise.resolve(null)
