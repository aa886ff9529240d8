import { type Clock, type Ids, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import {
  agentOf,
  type Call,
  type Fact,
  type Outcome,
  type RequestContext,
  type TraceContext,
} from '../../call/index.ts'
import type { OtelConfig } from './config.ts'
import { contentOf, type Erase } from './content.ts'
import type { Tracing } from './context/plane.ts'
import { CallTrace } from './context/trace.ts'
import { spanJson } from './export/encode.ts'
import type { Exporter } from './export/exporter.ts'
import type { ModelWords } from './models.ts'
import { type CallFacts, clientSpan, type EndedCall, type ModelCall, refusedSpan, serverSpan } from './spans/of-call.ts'
import type { Span } from './spans/span.ts'

/** Metrics of OpenTelemetry's conventions (docs/spec/gateway.md, metrics). An empty error type means no error. */
export interface CallMetrics {
  /** `mcp_server_operation_duration_seconds` */
  mcp(labels: { readonly method: string; readonly errorType: string }, seconds: number): void
  /** `gen_ai_client_operation_duration_seconds` */
  generated(labels: Generated & { readonly errorType: string }, seconds: number): void
  /** `gen_ai_client_token_usage` */
  tokens(
    labels: Pick<Generated, 'operation' | 'provider' | 'route'> & { readonly type: TokenType },
    count: number,
  ): void
}

type TokenType = 'input' | 'output'

interface Generated {
  readonly operation: string
  readonly provider: string
  readonly route: string
  readonly requestModel: string
  readonly responseModel: string
}

export interface TracerOptions {
  readonly config: OtelConfig
  readonly models: ModelWords
  /** Redacts by `genAI.contentDlpProfile`. */
  readonly erase: Erase
  readonly exporter: Pick<Exporter, 'add'>
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: CallMetrics
}

/** Starts the trace of each call, and creates its spans at its end. */
export class Tracer implements Tracing {
  readonly #options: TracerOptions
  /** Spans whose content is being redacted. */
  readonly #redacting = new Set<Promise<void>>()

  constructor(options: TracerOptions) {
    this.#options = options
  }

  begin(arrival: RequestContext): TraceContext {
    const { config, ids, clock } = this.#options
    const { sampleRatio } = config
    return new CallTrace(arrival, { sampleRatio, ids, now: clock.now(), monotonic: clock.monotonic() })
  }

  monotonic(): number {
    return this.#options.clock.monotonic()
  }

  /** Never throws. */
  ended(call: Call<Fact>, outcome: Outcome, record: CallFacts | null): void {
    const { trace } = call.wire
    if (trace instanceof CallTrace) this.#safely(() => this.#ended(call, trace, outcome, record))
  }

  /** Never throws. */
  turnedAway({ wire }: RequestContext, record: CallFacts): void {
    const { trace } = wire
    if (!(trace instanceof CallTrace) || !trace.sampled) return
    const { namespace = '', agent = '' } = record
    const caller = agentOf({ tenant: '', namespace: String(namespace), agent: String(agent) })
    this.#safely(() => this.#add(refusedSpan(trace, wire, record, trace.ms(this.monotonic())), caller))
  }

  #ended(call: Call<Fact>, trace: CallTrace, outcome: Outcome, record: CallFacts | null): void {
    const { config } = this.#options
    const left = outcome.result === 'cancelled' ? 'cancelled' : null
    const errorType = outcome.code ?? trace.notes?.errorType ?? left ?? failedStatus(outcome)
    const ended = { call, trace, outcome, record, ms: trace.ms(this.monotonic()), errorType }
    const model = this.#modelCall(ended)
    this.#count(ended, model)
    if (!trace.sampled) return
    const agent = agentOf(call.facts.identity)
    this.#add(serverSpan(ended, config), agent)
    if (trace.forwardedMs === null) return
    if (model === null || !config.genAI.captureContent) {
      this.#add(clientSpan(ended, trace.forwardedMs, model, config), agent)
      return
    }
    const adding = this.#addWithContent(ended, trace.forwardedMs, model).catch((error) => this.#failed(error))
    this.#redacting.add(adding)
    void adding.finally(() => this.#redacting.delete(adding))
  }

  async #addWithContent(ended: EndedCall, forwardedMs: number, model: ModelCall): Promise<void> {
    const agent = agentOf(ended.call.facts.identity)
    const { attributes, dropped } = await this.#content(ended, model)
    const span = clientSpan(ended, forwardedMs, { ...model, content: attributes }, this.#options.config)
    this.#add({ ...span, dropped }, agent)
  }

  /** Resolves once all spans of ended calls are added. */
  async settled(): Promise<void> {
    await Promise.all(this.#redacting)
  }

  /** Returns null if no model generated anything. */
  #modelCall({ call, trace }: EndedCall): ModelCall | null {
    const { models } = this.#options
    if (call.facts.target.kind !== 'model' || trace.forwardedMs === null) return null
    const operation = models.operation(call.method)
    if (operation === null) return null
    const facts = trace.notes?.facts() ?? null
    return { operation, provider: models.provider(call), request: models.request(call.body), facts, content: {} }
  }

  #content({ call }: EndedCall, { facts }: ModelCall) {
    const { models, erase, config } = this.#options
    const content = { prompt: models.prompt(call.body), messages: facts === null ? [] : facts.messages }
    return contentOf(content, { erase, maxBytes: config.genAI.maxContentBytes })
  }

  #count({ call, trace, outcome, ms, errorType }: EndedCall, model: ModelCall | null): void {
    const { metrics } = this.#options
    if (call.operation.startsWith('mcp.')) {
      metrics.mcp({ method: call.method, errorType: errorType ?? '' }, ms / 1000)
    }
    if (model === null) return
    const { key: route, tool } = call.facts.target
    const { operation, provider: known, facts } = model
    const provider = known ?? ''
    const models = { requestModel: tool ?? '', responseModel: facts?.model ?? '' }
    const seconds = (ms - (trace.forwardedMs ?? ms)) / 1000
    metrics.generated({ operation, provider, route, ...models, errorType: errorType ?? '' }, seconds)
    if (outcome.usage === null || outcome.usageSource !== 'reported') return
    metrics.tokens({ operation, provider, route, type: 'input' }, outcome.usage.prompt)
    metrics.tokens({ operation, provider, route, type: 'output' }, outcome.usage.completion)
  }

  #add(span: Span, agent: string): void {
    this.#options.exporter.add(spanJson(span), agent)
  }

  /** Logs errors of tracing, so that they cannot affect the call. */
  #safely(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#failed(error)
    }
  }

  #failed(error: unknown): void {
    this.#options.log.error({ error: reasonOf(error) }, 'spans of a call could not be created')
  }
}

/** Returns the error type of an HTTP error without a protocol response, or null. */
function failedStatus({ status }: Outcome): string | null {
  return status >= 400 ? String(status) : null
}
