import type { TestClock } from '@plat/core'
import { WindowCalendar } from '@plat/state'
import type { Body, Call, Facts, Identity, ModelDemand, Outcome, Snapshot, Target } from '../../call/index.ts'
import { testCall, testTarget } from '../../call/testing/call.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { TemplateCounters } from './book/template-counters.ts'
import { everySession } from './caps/budget.ts'
import { BudgetTable, type Selecting } from './caps/table.ts'

/** A call by `default/assistant` in session `s`, with the facts that the stage reads. */
export function callOf(
  id: string,
  { clock, snapshot, facts }: { clock: TestClock; snapshot: Snapshot; facts?: Partial<Facts> },
): Call<'identity' | 'target' | 'decision' | 'hold'> {
  const own = { id, receivedAt: clock.now(), snapshot, server: 'search', name: 'web' }
  return testCall<'identity' | 'target' | 'decision' | 'hold'>(
    { identity, target: toolTarget, decision, hold: null, ...facts },
    own,
  )
}

export const identity: Identity = {
  ...testIdentity,
  agent: 'assistant',
}

const toolTarget: Target = { ...testTarget, key: 'default/search', server: 'search', tool: 'web' }

export const modelTarget: Target = {
  ...toolTarget,
  kind: 'model',
  key: 'default.assistant',
  server: 'llm/default.assistant',
  tool: 'm',
}

export const decision: Facts['decision'] = {
  action: 'allow',
  policy: 'default/p',
  rule: 'r',
  reason: 'r',
  revision: 'sha256:0',
  engines: [],
  wouldBe: [],
  rates: [],
}

/** An outcome with defaults. */
export function outcomeOf(more: Partial<Outcome>): Outcome {
  return {
    result: 'completed',
    code: null,
    forwarded: true,
    status: 200,
    usage: null,
    usageSource: 'none',
    costMicros: 0,
    attempts: [],
    frames: 0,
    bytesUp: 0,
    bytesDown: 0,
    upstreamMs: 0,
    overheadMs: 0,
    ...more,
  }
}

/** A body that records the limit it was clamped to. */
export function cutBody(maxTokens: number): Body {
  return { bytes: Buffer.from(String(maxTokens)), value: maxTokens, args: null }
}

/** A prompt of at most 100 tokens to `openai/m` without an output limit. */
export function demandOf(more: Partial<ModelDemand>): ModelDemand {
  return {
    priced: { key: 'openai/m', scopes: [] },
    otherPriced: [],
    inputTokens: 100,
    bounded: true,
    openEnd: null,
    options: [],
    choices: 1,
    maxTokens: null,
    routeMaxTokens: null,
    tokensPerMinute: null,
    media: null,
    clamp: cutBody,
    ...more,
  }
}

/** Stage options for budgets: a cap per session (null: none) and other budgets. */
export function budgetParts(capMicros: number | null, more: readonly Selecting[] = []) {
  const session = capMicros === null ? [] : [{ cap: everySession(capMicros), match: {} }]
  const table = new BudgetTable(null, [...session, ...more])
  const templates = new TemplateCounters({ now: () => 0, zone: 'UTC' })
  return { budgetsOf: () => table, calendar: new WindowCalendar('UTC'), templates }
}

/** Output token limit of the model call. */
export const MAX_TOKENS = 100
/** A model call as agents send it. */
export const ask = JSON.stringify({
  model: 'small-1',
  messages: [{ role: 'user', content: 'Say hello.' }],
  max_tokens: MAX_TOKENS,
})
/** Pricing file: one micro-unit per input token, ten per output token. */
export const PRICES = { version: 1, currency: 'USD', id: 'test', models: { 'openai/*': { input: '1', output: '10' } } }
/** Maximum cost of its prompt, bounded by its bytes, and of the whole call; in micro-units. */
export const INPUT = Buffer.byteLength(ask)
export const HOLD = INPUT + 10 * MAX_TOKENS
