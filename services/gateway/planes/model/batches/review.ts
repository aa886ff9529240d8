import { isObject, type JsonObject, member, whenReady } from '@plat/core'
import {
  type Call,
  type Denial,
  deny,
  type Ending,
  type Frame,
  type FrameVerdict,
  type Identity,
  type Outcome,
  type PricedModel,
  type Usage,
} from '../../../call/index.ts'
import { type Review, type RunningReview, review } from '../../../pipeline/stage.ts'
import { isSet, isTokens } from '../dialects/checks.ts'
import { usageOf } from '../dialects/messages.ts'
import { reportOf } from '../dialects/openai.ts'
import { ModelFrame } from '../frame.ts'

type StoringCall = Call<'identity' | 'target'>

/** A batch that is not settled. */
export interface OpenBatch {
  readonly priced: PricedModel
  readonly options: readonly string[]
}

interface Storing {
  readonly identity: Identity
  readonly account: string
  readonly call: string
  readonly labels: readonly string[]
}

/** Use of a batch; `usage` is null where that is not known, so that its whole hold counts. */
interface Used {
  readonly usage: Usage | null
  readonly costMicros: number
}

/** Stores batches, with their owners and holds. */
export interface BatchStore<B extends OpenBatch> {
  labelsOf(identity: Identity): readonly string[]
  /** Stores the owner and the hold of a batch that was created. Resolves to null once that is durable. */
  created(call: StoringCall, storing: Storing, id: string): Promise<Denial | null>
  /** Stores the owner of files with results. Resolves to null once that is durable. */
  results(batch: B | null, storing: Storing, files: readonly string[]): Promise<Denial | null>
  find(account: string, id: string): B | null
  ofFile(account: string, file: string): B | null
  price(batch: B, usage: Usage): number
  /** Never rejects. */
  settle(batch: B, used: Used): Promise<void>
  deleted(account: string, id: string): Promise<Denial | null>
}

/** Binds batches to their callers, and settles their holds by their results. */
export function createBatchReview<B extends OpenBatch>(store: BatchStore<B>): Review<'identity' | 'target'> {
  return review({
    name: 'bind',
    needs: ['identity', 'target'],
    open(call: StoringCall) {
      const { operation, name, facts } = call
      const [account] = facts.target.accounts ?? []
      if (account === undefined) return null
      if (facts.target.results === true && name !== null) {
        const batch = operation === 'model.batch' ? store.find(account, name) : store.ofFile(account, name)
        return new ResultsReview(store, batch)
      }
      return operation === 'model.batch' ? new BatchReview(store, call, account) : null
    },
  })
}

const NOTHING: Usage = { prompt: 0, completion: 0, cachedRead: 0, cachedWrite: 0, reasoning: 0 }

class BatchReview<B extends OpenBatch> implements RunningReview {
  readonly #store: BatchStore<B>
  readonly #call: StoringCall
  readonly #account: string
  #batch: Outcome['batch']
  #isKnown = false

  constructor(store: BatchStore<B>, call: StoringCall, account: string) {
    this.#store = store
    this.#call = call
    this.#account = account
  }

  frame(frame: Frame): FrameVerdict {
    // A refused batch used nothing.
    if (frame.role !== 'final') {
      this.#isKnown = true
      return [frame]
    }
    const { value } = frame
    const stored = isObject(value) ? this.#stored(value) : deny('upstream_error', 'the provider sent no batch')
    return whenReady(stored, (denial): Denial | readonly Frame[] => denial ?? [withOwnResults(frame)])
  }

  end(): FrameVerdict {
    return []
  }

  /** The requests of the batch are settled by its hold, not by this call. */
  tally(): Pick<Outcome, 'usage' | 'usageSource' | 'costMicros' | 'batch'> {
    const source = this.#isKnown ? 'reported' : 'none'
    return { usage: null, usageSource: source, costMicros: 0, ...(this.#batch !== undefined && { batch: this.#batch }) }
  }

  #stored(value: JsonObject): null | Denial | Promise<Denial | null> {
    const { method, name, body, server } = this.#call
    const batch = body?.batch
    if (batch !== undefined) return this.#created(value, batch)
    this.#isKnown = true
    if (method.endsWith('/list')) return null
    if (value.id !== name || name === null) return deny('upstream_error', `${server} responded with another batch`)
    return method.endsWith('/delete') ? this.#deleted(name) : this.#changed(value, name)
  }

  async #created(
    value: JsonObject,
    { count, sha256 }: { readonly count: number; readonly sha256: string },
  ): Promise<Denial | null> {
    const { server } = this.#call
    const id = String(value.id)
    if (!ID.test(id)) return deny('upstream_error', `${server} responded with an invalid id of a batch`)
    const denial = await this.#store.created(this.#call, this.#storing(), id)
    if (denial !== null) return denial
    this.#isKnown = true
    this.#batch = { id, requests: count, sha256 }
    return null
  }

  /** Notes the results of a batch that has ended, and settles one that has none. */
  async #changed(value: JsonObject, id: string): Promise<Denial | null> {
    const batch = this.#store.find(this.#account, id)
    const files = [value.output_file_id, value.error_file_id].filter((one) => typeof one === 'string')
    if (files.some((file) => !ID.test(file)))
      return deny('upstream_error', `${this.#call.server} responded with an invalid id of a file`)
    const denial = files.length === 0 ? null : await this.#store.results(batch, this.#storing(), files)
    if (denial !== null || batch === null) return denial
    const used = usedBy(value)
    if (used === null) return null
    const costMicros = used === NOTHING ? 0 : this.#store.price(batch, used)
    await this.#store.settle(batch, { usage: used, costMicros })
    return null
  }

  async #deleted(id: string): Promise<Denial | null> {
    const batch = this.#store.find(this.#account, id)
    // Its results cannot be read any more.
    if (batch !== null) await this.#store.settle(batch, { usage: null, costMicros: 0 })
    return this.#store.deleted(this.#account, id)
  }

  #storing(): Storing {
    const { identity } = this.#call.facts
    const labels = [...new Set([...this.#store.labelsOf(identity), ...(this.#call.body?.batch?.labels ?? [])])]
    return { identity, account: this.#account, call: this.#call.id, labels }
  }
}

/** Ids become parts of paths at the provider. */
const ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/
/** States in OpenAI's API after which nothing is executed any more. */
const ENDED: ReadonlySet<unknown> = new Set(['failed', 'completed', 'expired', 'cancelled'])

/** Returns what a batch that has ended has used, if it is known without its results: nothing was executed. Null: it is not known. */
function usedBy(value: JsonObject): Usage | null {
  const { status, processing_status: processing, output_file_id: output, request_counts: counts } = value
  if (ENDED.has(status) && typeof output !== 'string' && member(counts, 'completed') === 0) return NOTHING
  if (processing === 'ended' && member(counts, 'succeeded') === 0) return NOTHING
  return null
}

/** Counts what the results of a batch say that it has used, and settles it when all of them were read. */
class ResultsReview<B extends OpenBatch> implements RunningReview {
  readonly #store: BatchStore<B>
  readonly #batch: B | null
  #usage = NOTHING
  #costMicros = 0
  #hasUnknown = false
  #hasResults = false

  constructor(store: BatchStore<B>, batch: B | null) {
    this.#store = store
    this.#batch = batch
  }

  frame(frame: Frame): FrameVerdict {
    if (this.#batch === null || frame.role !== 'partial') return [frame]
    const answer = answerIn(frame.value)
    if (answer === null) return [frame]
    this.#hasResults = true
    const usage = usageIn(answer)
    if (usage === null) this.#hasUnknown = true
    else {
      this.#costMicros += this.#store.price(this.#batch, usage)
      this.#usage = sum(this.#usage, usage)
    }
    return [frame]
  }

  end(how: Ending): FrameVerdict {
    // The file of errors has no results.
    if (how !== 'complete' || this.#batch === null || !this.#hasResults) return []
    const used = this.#hasUnknown
      ? { usage: null, costMicros: 0 }
      : { usage: this.#usage, costMicros: this.#costMicros }
    return this.#store.settle(this.#batch, used).then(() => [])
  }

  tally(): Pick<Outcome, 'usage' | 'usageSource' | 'costMicros'> {
    return { usage: null, usageSource: 'reported', costMicros: 0 }
  }
}

/** Returns the response in a line of results; null: the request was not executed. */
function answerIn(line: unknown): unknown {
  const result = member(line, 'result')
  if (isObject(result)) return result.type === 'succeeded' ? result.message : null
  const response = member(line, 'response')
  return member(response, 'status_code') === 200 ? member(response, 'body') : null
}

function usageIn(answer: unknown): Usage | null {
  const usage = member(answer, 'usage')
  if (isObject(usage) && isTokens(usage.prompt_tokens))
    return reportOf({ completion_tokens: 0, ...usage })?.usage ?? null
  const anthropic = member(answer, 'type') === 'message'
  if (anthropic) return usageOf(usage)
  return isObject(usage) ? ofResponse(usage) : null
}

/** Usage of `responses`: the prompt includes cached tokens. */
function ofResponse({ input_tokens: prompt, output_tokens: completion, ...details }: JsonObject): Usage | null {
  if (!isTokens(prompt) || !isTokens(completion)) return null
  const cachedRead = member(details.input_tokens_details, 'cached_tokens')
  const reasoning = member(details.output_tokens_details, 'reasoning_tokens')
  return {
    ...{ prompt, completion, cachedWrite: 0 },
    cachedRead: isTokens(cachedRead) ? cachedRead : 0,
    reasoning: isTokens(reasoning) ? reasoning : 0,
  }
}

function sum(one: Usage, other: Usage): Usage {
  return {
    prompt: one.prompt + other.prompt,
    completion: one.completion + other.completion,
    cachedRead: one.cachedRead + other.cachedRead,
    cachedWrite: one.cachedWrite + other.cachedWrite,
    reasoning: one.reasoning + other.reasoning,
  }
}

/**
 * Returns the frame with the results at the address of the gateway: at the provider's a client would send its session token there. Clients resolve
 * the path below their base URL.
 */
function withOwnResults(frame: Frame): Frame {
  const { value } = frame
  if (!isObject(value)) return frame
  const own = Array.isArray(value.data) ? { ...value, data: value.data.map(withOwnAddress) } : withOwnAddress(value)
  return own === value ? frame : ModelFrame.body(Buffer.from(JSON.stringify(own)))
}

function withOwnAddress(batch: unknown): unknown {
  if (!isObject(batch) || !isSet(batch.results_url)) return batch
  return { ...batch, results_url: `/v1/messages/batches/${String(batch.id)}/results` }
}
