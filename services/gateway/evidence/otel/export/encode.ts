import type { Attributes, Span } from '../spans/span.ts'

// The JSON encoding of OTLP 1.x (opentelemetry-proto, docs/specification.md, "JSON Protobuf Encoding"): ids are hex, enumerations
// are numbers, and 64-bit integers are strings.

/** Status code of failed spans. */
const STATUS_ERROR = 2

export function spanJson(span: Span): string {
  const { name, kind, traceId, spanId, parentSpanId, traceState, attributes, dropped, events, links, error } = span
  return JSON.stringify({
    traceId,
    spanId,
    parentSpanId: parentSpanId ?? undefined,
    traceState: traceState || undefined,
    name: name.toWellFormed(),
    kind,
    startTimeUnixNano: nanos(span.startedAt),
    endTimeUnixNano: nanos(span.endedAt),
    attributes: attributesOf(attributes),
    droppedAttributesCount: dropped || undefined,
    events: events.map((event) => ({
      name: event.name,
      timeUnixNano: nanos(event.at),
      attributes: attributesOf(event.attributes),
    })),
    links: links.map((link) => ({
      traceId: link.traceId,
      spanId: link.spanId,
      traceState: link.state || undefined,
    })),
    status: error === null ? {} : { code: STATUS_ERROR, message: error },
  })
}

/** Returns the text before and after the comma-separated spans of a request. */
export function envelope(resource: Attributes, scope: { readonly name: string; readonly version: string }) {
  const [before = '', behind = ''] = JSON.stringify({
    resourceSpans: [{ resource: { attributes: attributesOf(resource) }, scopeSpans: [{ scope, spans: [] }] }],
  }).split(/(?<="spans":\[)(?=\]\}\]\}\]\}$)/)
  return { before, behind }
}

function attributesOf(attributes: Attributes): object[] {
  const all: object[] = []
  for (const key in attributes) {
    const value = attributes[key]
    if (value !== undefined) all.push({ key, value: anyValue(value) })
  }
  return all
}

function anyValue(value: NonNullable<Attributes[string]>): object {
  if (typeof value === 'string') return { stringValue: value.toWellFormed() }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  return { arrayValue: { values: value.map((one) => ({ stringValue: one.toWellFormed() })) } }
}

const NANOS_PER_MS = 1_000_000

/** Converts milliseconds to nanoseconds as a string; the number exceeds safe integers. */
function nanos(ms: number): string {
  const whole = Math.floor(ms)
  const rest = Math.min(NANOS_PER_MS - 1, Math.round((ms - whole) * NANOS_PER_MS))
  return `${whole}${String(rest).padStart(6, '0')}`
}
