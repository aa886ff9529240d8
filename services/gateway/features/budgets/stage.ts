import type { Clock } from '@plat/core'
import { type Hold, type HoldItem, isShort, type Limits, type Short } from '@plat/state'
import { type Body, type Call, type Denial, deny, type Outcome } from '../../call/index.ts'
import { type Stage, stage, type Verdict } from '../../pipeline/stage.ts'
import type { DemandOf, ModelDemand } from './demand.ts'
import { costAtMost, type ModelPrice, outputThatFits } from './pricing/price.ts'
import { pricingSlot } from './pricing/pricing.ts'

/** Output tokens that a model call holds when neither its caller nor its route says how many. */
const DEFAULT_MAX_TOKENS = 4096
/** A call that could generate fewer tokens than this is refused instead of cut down. */
const FEWEST_TOKENS = 64
/** How long a hold without an owner lasts, in milliseconds: longer than any call. */
const HOLD_LIFE_MS = 24 * 3_600_000

export interface ReserveOptions {
  readonly limits: Limits
  /** Micro-units that one session may spend; null: no limit. */
  readonly sessionCapMicros: number | null
  readonly demandOf: DemandOf
  readonly clock: Clock
  /** A call was refused because a cap of this scope is used up. */
  readonly denied: (scope: 'session') => void
  /** So many micro-units were spent. */
  readonly metered: (micros: number) => void
}

/** Every item of a hold has spent what it held. */
const NOTHING_ELSE: ReadonlyMap<string, number> = new Map()

type Judged = Call<'identity' | 'target' | 'decision'>
type Reserved = Verdict<'hold'>
/** What comes of a cap that was too short. */
type Otherwise = (short: Short) => Reserved | Promise<Reserved>

/**
 * Holds what a call may cost and the rates that its policy names, all in one step before anything is forwarded, and settles when
 * it is over. A model call that asks for more output than is left is cut down to what fits; the cut is written into its body.
 */
export function createReserveStage(
  options: ReserveOptions,
): Stage<'reserve', 'identity' | 'target' | 'decision', 'hold'> {
  const reserve = new Reserve(options)
  return stage({
    name: 'reserve',
    needs: ['identity', 'target', 'decision'],
    gives: ['hold'],
    skipped: { hold: null },
    admit: (call) => reserve.admit(call),
    settle: (call: Call<'identity' | 'target' | 'decision' | 'hold'>, outcome) => reserve.settle(call, outcome),
  })
}

class Reserve {
  readonly #options: ReserveOptions

  constructor(options: ReserveOptions) {
    this.#options = options
  }

  admit(call: Judged): Reserved | Promise<Reserved> {
    const demand = this.#options.demandOf(call)
    if (demand !== null) return this.#admitModel(call, demand)
    const { key, tool } = call.facts.target
    const micros = tool === null ? 0 : call.snapshot.get(pricingSlot).tool(`${key}/${tool}`)
    const items = this.#items(call, micros)
    return items.length === 0 ? { hold: null } : this.#take(call.id, items, (short) => this.#refuse(call, short))
  }

  #admitModel(call: Judged, demand: ModelDemand): Reserved | Promise<Reserved> {
    const limit = smaller(demand.maxTokens, demand.routeMaxTokens)
    const { rates } = call.facts.decision
    if (this.#options.sessionCapMicros === null) {
      const body = limit === null ? null : clamped(demand, limit)
      return rates.length === 0
        ? given(null, body)
        : this.#take(call.id, rates, (short) => this.#refuse(call, short), body)
    }
    const price = call.snapshot.get(pricingSlot).model(demand.priceKey)
    const maxTokens = limit ?? DEFAULT_MAX_TOKENS
    const most =
      price === null || !demand.bounded ? null : costAtMost(price, demand.inputTokens, maxTokens * demand.choices)
    if (price === null || most === null) return priceUnknown(demand)
    const items = this.#items(call, most)
    const again = (short: Short) => this.#takeLess(call, { demand, price, maxTokens, short })
    return this.#take(call.id, items, again, clamped(demand, maxTokens))
  }

  /** One second take with what is left, when enough output fits into it. */
  #takeLess(
    call: Judged,
    { demand, price, maxTokens, short }: { demand: ModelDemand; price: ModelPrice; maxTokens: number; short: Short },
  ): Reserved | Promise<Reserved> {
    const refuse = (why: Short) => this.#refuse(call, why)
    if (short.key !== sessionKey(call)) return refuse(short)
    const fits = Math.floor(outputThatFits(price, demand.inputTokens, short.left) / demand.choices)
    if (fits < Math.min(FEWEST_TOKENS, maxTokens)) return refuse(short)
    const less = Math.min(fits, maxTokens)
    const most = costAtMost(price, demand.inputTokens, less * demand.choices)
    if (most === null) return priceUnknown(demand)
    const items = this.#items(call, most)
    return this.#take(`${call.id}/2`, items, refuse, clamped(demand, less))
  }

  /** A plain value where the limits answer at once. */
  #take(
    id: string,
    items: readonly HoldItem[],
    otherwise: Otherwise,
    body: Body | null = null,
  ): Reserved | Promise<Reserved> {
    const answer = this.#options.limits.take(id, items, this.#options.clock.now() + HOLD_LIFE_MS)
    return answer instanceof Promise ? takenLate(answer, otherwise, body) : taken(answer, otherwise, body)
  }

  /** The rates of the policy, and what the call may cost of its session's budget. */
  #items(call: Judged, micros: number): readonly HoldItem[] {
    const { rates } = call.facts.decision
    const cap = this.#options.sessionCapMicros
    if (cap === null || micros === 0) return rates
    const money: HoldItem = { key: sessionKey(call), window: 'life', cap, amount: micros, unit: 'micros' }
    return rates.length === 0 ? [money] : [...rates, money]
  }

  #refuse(call: Judged, short: Short): Denial {
    const { policy, rule } = call.facts.decision
    if (short.key !== sessionKey(call)) {
      const retryAfterMs = short.resetsAt === null ? null : Math.max(0, short.resetsAt - this.#options.clock.now())
      return deny('rate_limited', `the limit ${short.key} is used up for now`, { policy, rule, retryAfterMs })
    }
    this.#options.denied('session')
    const { currency } = call.snapshot.get(pricingSlot)
    const left = (short.left / 1e6).toFixed(6)
    return deny('budget_exceeded', `the call may cost more than the ${left} ${currency} left of the session's budget`)
  }

  settle(call: Call<'target' | 'hold'>, outcome: Outcome): void | Promise<void> {
    const { hold } = call.facts
    if (!outcome.forwarded) return hold?.release()
    const held = hold?.items.find((item) => item.unit === 'micros')
    const spent = held === undefined ? outcome.costMicros : this.#spent(call, held, outcome)
    if (spent > 0) this.#options.metered(spent)
    // Rates have spent what they held.
    return hold?.settle(held === undefined ? NOTHING_ELSE : new Map<string, number>().set(held.key, spent))
  }

  /** What a forwarded call cost: as reported; else what was seen of it; at least its prompt, which the upstream has read. */
  #spent(call: Call<'target' | 'hold'>, held: HoldItem, { usageSource, costMicros, result, code }: Outcome): number {
    if (usageSource === 'reported') return costMicros
    if (usageSource === 'estimated') return Math.min(held.amount, costMicros)
    // The plane refused it itself, or the upstream did not take the gateway's key: nothing was begun.
    if (result === 'denied' || code === 'upstream_credential') return Math.min(held.amount, costMicros)
    const demand = this.#options.demandOf(call)
    const price = demand === null ? null : call.snapshot.get(pricingSlot).model(demand.priceKey)
    if (demand === null || price === null) return held.amount
    return Math.min(held.amount, costAtMost(price, demand.inputTokens, 0) ?? held.amount)
  }
}

function taken(answer: Hold | Short, otherwise: Otherwise, body: Body | null): Reserved | Promise<Reserved> {
  return isShort(answer) ? otherwise(answer) : given(answer, body)
}

async function takenLate(answer: Promise<Hold | Short>, otherwise: Otherwise, body: Body | null): Promise<Reserved> {
  return taken(await answer, otherwise, body)
}

function sessionKey({ facts: { identity } }: Judged): string {
  // Joined, the text lies in one piece, as the record that says it asks for.
  return ['usd/session', identity.namespace, identity.agent, identity.session].join('/')
}

/** Of two limits; null is none. */
function smaller(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other)
}

/** Null where the caller asked for no more already. */
function clamped(demand: ModelDemand, maxTokens: number): Body | null {
  return demand.maxTokens !== null && demand.maxTokens <= maxTokens ? null : demand.clamp(maxTokens)
}

function given(hold: Hold | null, body: Body | null): Reserved {
  return body === null ? { hold } : { kind: 'replace', body, facts: { hold } }
}

function priceUnknown({ priceKey, bounded }: ModelDemand): Denial {
  const why = bounded
    ? `no price is known for ${priceKey}`
    : 'nothing bounds what images, sound, files and predicted output cost'
  return deny('price_unknown', `${why}, and the session has a budget`)
}
