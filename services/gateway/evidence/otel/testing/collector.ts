import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type ServerOptions } from 'node:https'
import type { TestContext } from 'node:test'
import { closed, listening } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import Type, { type Static } from 'typebox'
import { Check, Errors } from 'typebox/value'

const strict = { additionalProperties: false }
const hex = (digits: number) => Type.String({ pattern: `^[0-9a-f]{${digits}}$` })
const nanos = Type.String({ pattern: '^[1-9]\\d{17,18}$' })
const text = Type.Object({ stringValue: Type.String() }, strict)
const Attribute = Type.Object(
  {
    key: Type.String({ minLength: 1 }),
    value: Type.Union([
      text,
      Type.Object({ boolValue: Type.Boolean() }, strict),
      Type.Object({ intValue: Type.String({ pattern: '^-?\\d{1,19}$' }) }, strict),
      Type.Object({ doubleValue: Type.Number() }, strict),
      Type.Object({ arrayValue: Type.Object({ values: Type.Array(text) }, strict) }, strict),
    ]),
  },
  strict,
)
const Span = Type.Object(
  {
    traceId: hex(32),
    spanId: hex(16),
    parentSpanId: Type.Optional(hex(16)),
    traceState: Type.Optional(Type.String()),
    name: Type.String({ minLength: 1 }),
    kind: Type.Union([Type.Literal(2), Type.Literal(3)]),
    startTimeUnixNano: nanos,
    endTimeUnixNano: nanos,
    attributes: Type.Array(Attribute),
    droppedAttributesCount: Type.Optional(Type.Integer({ minimum: 1 })),
    events: Type.Array(
      Type.Object({ name: Type.String(), timeUnixNano: nanos, attributes: Type.Array(Attribute) }, strict),
    ),
    links: Type.Array(
      Type.Object({ traceId: hex(32), spanId: hex(16), traceState: Type.Optional(Type.String()) }, strict),
    ),
    status: Type.Object({ code: Type.Optional(Type.Literal(2)), message: Type.Optional(Type.String()) }, strict),
  },
  strict,
)
/** `ExportTraceServiceRequest` in JSON, restricted to the parts that the gateway writes. */
const Exported = Type.Object(
  {
    resourceSpans: Type.Tuple([
      Type.Object(
        {
          resource: Type.Object({ attributes: Type.Array(Attribute) }, strict),
          scopeSpans: Type.Tuple([
            Type.Object(
              {
                scope: Type.Object({ name: Type.String(), version: Type.String() }, strict),
                spans: Type.Array(Span, { minItems: 1 }),
              },
              strict,
            ),
          ]),
        },
        strict,
      ),
    ]),
  },
  strict,
)

/** A received span with its attributes by name. */
export interface ReceivedSpan extends Omit<Static<typeof Span>, 'attributes'> {
  readonly attributes: Readonly<Record<string, unknown>>
}

/** One export. */
export interface Export {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly resource: Readonly<Record<string, unknown>>
  readonly spans: readonly ReceivedSpan[]
}

/** Behavior of the collector instead of accepting an export. */
export type CollectorBehavior = (response: ServerResponse) => void

/** A strict trace collector: it refuses anything that the format does not allow. */
export interface TestCollector {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly exports: readonly Export[]
  /** Every accepted span. */
  readonly spans: readonly ReceivedSpan[]
  /** Sets the responses to the next exports, one each. */
  answers(...next: readonly CollectorBehavior[]): void
  /** Waits for this number of spans of a trace. */
  trace(traceId: string, count: number): Promise<readonly ReceivedSpan[]>
  close(): Promise<void>
}

/** Starts a collector; HTTPS with `tls`. */
export async function startCollector(t: TestContext, tls?: ServerOptions): Promise<TestCollector> {
  const exports: Export[] = []
  const spans: ReceivedSpan[] = []
  const answers: CollectorBehavior[] = []
  const server = tls === undefined ? createServer() : createTlsServer(tls)
  server.on('request', async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const one = read(Buffer.concat(chunks), request.url ?? '', request.headers)
    exports.push(one)
    const answer = answers.shift()
    if (answer !== undefined) return answer(response)
    spans.push(...one.spans)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"partialSuccess":{}}')
  })
  const port = await listening(server)
  let open = true
  const close = async () => {
    if (open) await closed(server)
    open = false
  }
  t.after(close)
  const inTrace = (traceId: string) => spans.filter((span) => span.traceId === traceId)
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    exports,
    spans,
    answers: (...next) => void answers.push(...next),
    async trace(traceId, count) {
      await until(() => inTrace(traceId).length >= count, `${count} spans of trace ${traceId}`)
      return inTrace(traceId)
    },
    close,
  }
}

function read(bytes: Buffer, path: string, headers: IncomingHttpHeaders): Export {
  assert.equal(headers['content-type'], 'application/json')
  const value: unknown = JSON.parse(bytes.toString('utf8'))
  assert.ok(Check(Exported, value), JSON.stringify(Errors(Exported, value).slice(0, 3)))
  const [{ resource, scopeSpans }] = value.resourceSpans
  const spans = scopeSpans[0].spans.map((span) => ({ ...span, attributes: byName(span.attributes) }))
  return { path, headers, resource: byName(resource.attributes), spans }
}

function byName(attributes: readonly Static<typeof Attribute>[]): Readonly<Record<string, unknown>> {
  const names = new Set(attributes.map(({ key }) => key))
  assert.equal(names.size, attributes.length, 'a duplicate attribute')
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]))
}

function plain(value: Static<typeof Attribute>['value']): unknown {
  if ('intValue' in value) return Number(value.intValue)
  if ('arrayValue' in value) return value.arrayValue.values.map(({ stringValue }) => stringValue)
  return Object.values(value)[0]
}
