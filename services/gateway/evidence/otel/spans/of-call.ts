import type { Call, Outcome, Target } from '../../../call/index.ts'
import type { CallTrace } from '../context/trace.ts'
import type { ModelFacts } from '../models.ts'
import { type Attributes, CLIENT, SERVER, type Span } from './span.ts'

/** Maximum length of a caller's text in a span, in characters. */
const MAX_TEXT = 1024

/** The last record of a call, or equivalent facts. */
export type CallFacts = Readonly<Record<string, unknown>>

/** Optional facts in spans (docs/spec/gateway.md, `otel`). */
export interface SpanOptions {
  readonly recordArgs: boolean
  readonly recordUser: boolean
  readonly genAI: { readonly emitLegacySystem: boolean }
}

/** A finished call. */
export interface EndedCall {
  readonly call: Call<'identity' | 'target' | 'decision' | 'approval' | 'taints'>
  readonly trace: CallTrace
  readonly outcome: Outcome
  readonly record: CallFacts | null
  /** Milliseconds from the start to the end. */
  readonly ms: number
  readonly errorType: string | null
}

/** Span of the request to the gateway. */
export function serverSpan(ended: EndedCall, options: SpanOptions): Span {
  const { call, trace, outcome, record, ms, errorType } = ended
  const { identity, target, approval, taints } = call.facts
  const known = target.key !== ''
  return {
    ...spanOf(trace, { kind: SERVER, name: nameOf(call, target), ms: [0, ms] }),
    attributes: {
      'plat.decision_id': call.id,
      ...callerOf(identity, options),
      'plat.operation': call.operation,
      'plat.server': short(known ? target.server : call.server),
      'plat.data_class': known ? target.dataClass : undefined,
      'plat.action': text(record?.action),
      'plat.policy': text(record?.policy),
      'plat.rule': text(record?.rule),
      'plat.result': outcome.result,
      'plat.status': outcome.status,
      'plat.overhead_ms': outcome.overheadMs,
      'plat.cost_micros': outcome.costMicros > 0 ? outcome.costMicros : undefined,
      'plat.approval_id': approval?.approvalId,
      'plat.taints': taints.labels.length > 0 ? taints.labels : undefined,
      'plat.args.sha256': options.recordArgs ? text(record?.argsSha256) : undefined,
      'plat.args.bytes': options.recordArgs && typeof record?.argsBytes === 'number' ? record.argsBytes : undefined,
      'http.request.method': call.wire.method,
      'url.path': short(call.wire.path),
      'error.type': errorType ?? undefined,
      ...protocolOf(call),
    },
    error: isFault(outcome, errorType) ? (text(record?.reason) ?? errorType ?? '') : null,
  }
}

/** Span of the request to the upstream. */
export function clientSpan(ended: EndedCall, forwardedMs: number, model: ModelCall | null, options: SpanOptions): Span {
  const { call, trace, outcome, ms, errorType } = ended
  const { target } = call.facts
  const name = model === null ? nameOf(call, target) : `${model.operation} ${short(target.tool ?? '')}`.trimEnd()
  return {
    ...spanOf(trace, { kind: CLIENT, name, ms: [forwardedMs, ms] }),
    spanId: trace.outgoingId,
    parentSpanId: trace.spanId,
    links: [],
    attributes: {
      ...placeOf(outcome),
      'error.type': errorType ?? undefined,
      ...(model === null ? protocolOf(call) : generationOf(ended, model, options)),
    },
    events: attemptsOf(outcome, trace.startedAt + forwardedMs),
    error: isFault(outcome, errorType) ? (errorType ?? '') : null,
  }
}

/** Span of a request refused before it was parsed. */
export function refusedSpan(trace: CallTrace, wire: Call['wire'], record: CallFacts, ms: number): Span {
  const [, prefix = ''] = wire.path.split('/')
  return {
    ...spanOf(trace, { kind: SERVER, name: `${wire.method} /${short(prefix)}`, ms: [0, ms] }),
    attributes: {
      'plat.decision_id': text(record.call),
      'plat.namespace': text(record.namespace),
      'plat.agent': text(record.agent),
      'plat.session': text(record.session),
      'plat.action': text(record.action),
      'plat.result': 'denied',
      'http.request.method': wire.method,
      'url.path': short(wire.path),
      'error.type': text(record.code),
    },
    error: text(record.reason) ?? '',
  }
}

/** A model call, as attributes of the conventions. */
export interface ModelCall {
  readonly operation: string
  readonly provider: string | null
  readonly request: Attributes
  readonly facts: ModelFacts | null
  /** Redacted content. */
  readonly content: Attributes
}

function spanOf(
  trace: CallTrace,
  { kind, name, ms: [from, to] }: { kind: Span['kind']; name: string; ms: readonly [number, number] },
): Omit<Span, 'attributes' | 'error'> {
  const { parent, beside } = trace
  return {
    name,
    kind,
    traceId: trace.traceId,
    spanId: trace.spanId,
    parentSpanId: parent?.spanId ?? null,
    traceState: parent?.state ?? '',
    startedAt: trace.startedAt + from,
    endedAt: trace.startedAt + Math.max(from, to),
    dropped: 0,
    events: [],
    links: beside === null ? [] : [beside],
  }
}

/** Span name: the method, with its target if the set of targets is limited. */
function nameOf({ operation, method, name, server }: Call, { kind, key, tool }: Target): string {
  if (operation === 'mcp.call' || method === 'prompts/get') return `${method} ${short(name ?? '')}`.trimEnd()
  if (operation.startsWith('mcp.')) return method === 'GET' ? 'GET /mcp' : method
  if (kind === 'builtin') return method
  return `${method} ${short(key || server || (tool ?? ''))}`.trimEnd()
}

function callerOf(identity: EndedCall['call']['facts']['identity'], { recordUser }: SpanOptions): Attributes {
  const { tenant, namespace, agent, session, user, tier } = identity
  return {
    'plat.tenant': tenant || undefined,
    'plat.namespace': namespace,
    'plat.agent': agent,
    'plat.session': session,
    'plat.tier': tier,
    'enduser.id': recordUser ? (user ?? undefined) : undefined,
  }
}

/** Attributes of the protocol's conventions. */
function protocolOf({ operation, method, name }: Call): Attributes {
  if (operation.startsWith('mcp.')) {
    return {
      'mcp.method.name': method,
      'gen_ai.operation.name': operation === 'mcp.call' ? 'execute_tool' : undefined,
      'gen_ai.tool.name': operation === 'mcp.call' && name !== null ? short(name) : undefined,
      'gen_ai.prompt.name': method === 'prompts/get' && name !== null ? short(name) : undefined,
      'mcp.resource.uri': method === 'resources/read' && name !== null ? short(name) : undefined,
    }
  }
  if (!operation.startsWith('a2a.')) return {}
  return { 'rpc.method': method, 'gen_ai.operation.name': operation === 'a2a.send' ? 'invoke_agent' : undefined }
}

function generationOf({ call, outcome }: EndedCall, model: ModelCall, { genAI }: SpanOptions): Attributes {
  const { target, identity } = call.facts
  const { operation, provider, request, facts, content } = model
  const usage = outcome.usageSource === 'reported' ? outcome.usage : null
  return {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': provider ?? undefined,
    'gen_ai.system': genAI.emitLegacySystem ? (provider ?? undefined) : undefined,
    'gen_ai.request.model': short(target.tool ?? '') || undefined,
    'gen_ai.agent.name': identity.agent,
    'gen_ai.conversation.id': identity.session,
    ...request,
    'gen_ai.response.id': facts?.id ?? undefined,
    'gen_ai.response.model': facts?.model ?? undefined,
    'gen_ai.response.finish_reasons':
      facts !== null && facts.finishReasons.length > 0 ? facts.finishReasons : undefined,
    'gen_ai.usage.input_tokens': usage?.prompt,
    'gen_ai.usage.output_tokens': usage?.completion,
    'gen_ai.usage.cache_read.input_tokens': usage?.cachedRead || undefined,
    'gen_ai.usage.cache_creation.input_tokens': usage?.cachedWrite || undefined,
    'gen_ai.usage.reasoning.output_tokens': usage?.reasoning || undefined,
    'plat.model_route': target.key,
    ...content,
  }
}

/** Address of the last attempt. */
function placeOf({ attempts }: Outcome): Attributes {
  const endpoint = attempts.at(-1)?.endpoint
  if (endpoint === undefined || !URL.canParse(endpoint)) return {}
  const { hostname, port, protocol } = new URL(endpoint)
  return { 'server.address': hostname, 'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) }
}

/** Events for the attempts of a call with more than one. */
function attemptsOf({ attempts }: Outcome, from: number): Span['events'] {
  if (attempts.length < 2) return []
  let at = from
  return attempts.map(({ endpoint, status, ms }) => {
    at += ms
    return { name: 'plat.attempt', at, attributes: { 'plat.endpoint': endpoint, 'plat.status': status } }
  })
}

/** Calls aborted by the caller are not errors. */
function isFault({ result }: Outcome, errorType: string | null): boolean {
  if (result === 'cancelled' || result === 'suspended') return false
  return result !== 'completed' || errorType !== null
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? short(value) : undefined
}

function short(value: string): string {
  return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value
}
