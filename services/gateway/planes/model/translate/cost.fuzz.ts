import { setImmediate } from 'node:timers/promises'
import { runInSlices } from '@plat/core'
import { costTarget, type Families, type Row } from '../../../../../test/fuzz/cost.ts'
import { InvalidResponseError } from '../invalid.ts'
import { translatorOf } from './all.ts'
import { awsEvent, awsMessage, facts } from './testing.ts'
import { TranslatedBytes } from './translated.ts'
import type { Speech } from './translator.ts'

/** Longer responses and events take the same part of what `JSON.parse` takes. */
const RESPONSE = 4 * 1024 * 1024
/** Bytes of one read of a socket. */
const READ = 64 * 1024
const FIRST_NUMBER = 100_000_000

/** Different numbers of about `n` characters together, which a double would change. */
const exactNumbers = (n: number) => `[${Array.from({ length: n / 13 }, (_, at) => `1.${FIRST_NUMBER + at}0`).join()}]`
const values: Families = {
  'exact numbers': exactNumbers,
  'small numbers': (n) => `[${'1,'.repeat(n / 2)}1]`,
  'spaced numbers': (n) => `[${'1, '.repeat(n / 3)}1]`,
  escapes: (n) => `"${'\\u0061'.repeat(n / 6)}"`,
  'deep values': (n) => `[${`${'['.repeat(50)}1${']'.repeat(50)},`.repeat(n / 102)}1]`,
  members: (n) => `{${Array.from({ length: n / 11 }, (_, at) => `"m${at}":1`).join()}}`,
  'empty values': (n) => `[${'[],{},'.repeat(n / 6)}1]`,
  'escaped quotes': (n) => `"${'\\"'.repeat(n / 2)}"`,
}

/** How a provider writes responses and events. `rest`: a member that is not translated. */
interface Provider {
  readonly speaks: Speech
  readonly text: string
  call(args: string): string
  whole(parts: readonly string[], rest: string): string
  event(parts: readonly string[], rest: string): string
  /** An event can have several parts. */
  readonly hasManyParts: boolean
  /** The part of an event that continues the arguments of a call. */
  more(args: string): string
}

const inChoice = (message: string) => (parts: readonly string[], rest: string) =>
  `{"choices":[{"index":0,"${message}":{"content":"a","tool_calls":[${parts.join()}]},"finish_reason":"stop"}],"rest":${rest}}`
const openaiCall = (args: string) => `{"index":0,"id":"c","function":{"name":"a","arguments":${JSON.stringify(args)}}}`

const openai: Provider = {
  speaks: 'openai',
  text: openaiCall(''),
  call: openaiCall,
  whole: inChoice('message'),
  event: inChoice('delta'),
  hasManyParts: true,
  more: openaiCall,
}
const anthropic: Provider = {
  speaks: 'anthropic',
  text: '{"type":"text","text":"a"}',
  call: (args) => `{"type":"tool_use","id":"c","name":"a","input":${args}}`,
  whole: (parts, rest) => `{"content":[${parts.join()}],"stop_reason":"end_turn","rest":${rest}}`,
  event: ([part = ''], rest) => `{"type":"content_block_delta","index":0,"delta":${part},"rest":${rest}}`,
  hasManyParts: false,
  more: (args) => `{"type":"input_json_delta","partial_json":${JSON.stringify(args)}}`,
}
const converse: Provider = {
  speaks: 'converse',
  text: '{"text":"a"}',
  call: (args) => `{"toolUse":{"toolUseId":"c","name":"a","input":${args}}}`,
  whole: (parts, rest) => `{"output":{"message":{"content":[${parts.join()}]}},"stopReason":"end_turn","rest":${rest}}`,
  event: ([part = ''], rest) => `{"contentBlockIndex":0,"delta":${part},"rest":${rest}}`,
  hasManyParts: false,
  more: (args) => `{"toolUse":{"input":${JSON.stringify(args)}}}`,
}
const geminiCall = (args: string) => `{"functionCall":{"name":"a","args":${args}}}`
const inCandidate = (parts: readonly string[], rest: string) =>
  `{"candidates":[{"content":{"parts":[${parts.join()}]},"finishReason":"STOP"}],"rest":${rest}}`
const gemini: Provider = {
  speaks: 'gemini',
  text: '{"text":"a"}',
  call: geminiCall,
  whole: inCandidate,
  event: inCandidate,
  hasManyParts: true,
  more: geminiCall,
}
const PROVIDERS = [openai, anthropic, converse, gemini]

/** Texts with a hostile value of about `n` characters. */
const eachValue = (place: string, around: (value: string) => string): Families =>
  Object.fromEntries(Object.entries(values).map(([name, make]) => [`${name} ${place}`, (n) => around(make(n))]))

const many = (n: number, part: string) => Array.from({ length: Math.ceil(n / (part.length + 1)) }, () => part)

/** Hostile values in the arguments of calls and elsewhere, and many parts. */
const responsesOf = ({ whole, text, call }: Provider): Families => ({
  ...eachValue('in arguments', (value) => whole([call(`{"a":${value}}`)], '1')),
  ...eachValue('elsewhere', (value) => whole([text], value)),
  texts: (n) => whole(many(n, text), '1'),
  calls: (n) => whole(many(n, call('{"a":1.0}')), '1'),
  'calls behind a long value': (n) => whole([call(exactNumbers(n / 2)), ...many(n / 2, call('{"a":1.0}'))], '1'),
})

/** The same as one event. */
const eventsOf = ({ event, text, more, hasManyParts }: Provider): Families => ({
  ...eachValue('in arguments', (value) => event([more(`{"a":${value}}`)], '1')),
  ...eachValue('elsewhere', (value) => event([text], value)),
  ...(hasManyParts && {
    texts: (n) => event(many(n, text), '1'),
    calls: (n) => event(many(n, more('1')), '1'),
  }),
})

/** Events, one a line, as many as one read has. */
const readsOf = ({ event, text, more }: Provider): Families => ({
  texts: (n) => many(n, event([text], '1')).join('\n'),
  arguments: (n) => many(n, event([more('1')], '1.0')).join('\n'),
  'empty objects': (n) => many(n, '{}').join('\n'),
})

async function orInvalid(work: () => unknown): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof InvalidResponseError)) throw error
  }
}

/** Translates a whole response, or refuses it. */
const wholeRow = (provider: Provider, method: string): Row => ({
  parser: 'translated responses of models',
  part: `${provider.speaks} for ${method}`,
  limit: RESPONSE,
  families: responsesOf(provider),
  prepare(input) {
    const bytes = Buffer.from(input)
    const translator = translatorOf(provider.speaks, method)
    return () => orInvalid(() => translator && runInSlices(translator.answer(bytes, facts, {})))
  },
})

/** An event of a stream in the framing of its provider. */
function framed(speaks: Speech, event: string): Buffer {
  if (speaks === 'converse') return awsMessage({ ':event-type': 'contentBlockDelta', ':message-type': 'event' }, event)
  if (speaks === 'anthropic-bedrock') return awsEvent('chunk', { bytes: Buffer.from(event).toString('base64') })
  return Buffer.from(`data: ${event}\n\n`)
}

/** The event that begins a call whose arguments follow. */
const BEGINNINGS: Readonly<Partial<Record<Speech, Buffer>>> = {
  anthropic: framed('anthropic', `{"type":"content_block_start","index":0,"content_block":${anthropic.call('{}')}}`),
  'anthropic-bedrock': framed(
    'anthropic-bedrock',
    `{"type":"content_block_start","index":0,"content_block":${anthropic.call('{}')}}`,
  ),
  converse: awsEvent('contentBlockStart', { start: { toolUse: { toolUseId: 'c', name: 'a' } } }),
}

/** Translates events, one a line, in reads of a socket. */
const streamRow = ({ speaks }: Provider, options: Pick<Row, 'limit' | 'families'>): Row => ({
  ...options,
  parser: 'translated responses of models',
  part: `stream of ${speaks}${options.limit === READ ? ', one read' : ''}`,
  prepare(input) {
    const bytes = Buffer.concat(input.split('\n').map((event) => framed(speaks, event)))
    const translator = translatorOf(speaks, speaks.startsWith('anthropic') ? 'chat/completions' : 'messages')
    return () =>
      orInvalid(async () => {
        const stream = translator?.stream(facts) ?? null
        if (stream === null) return
        const reads = [BEGINNINGS[speaks] ?? Buffer.alloc(0)]
        for (let at = 0; at < bytes.length; at += READ) reads.push(bytes.subarray(at, at + READ))
        const source = { news: () => setImmediate(), take: () => (reads.length === 0 ? null : reads.splice(0, 1)) }
        const translated = new TranslatedBytes(source, stream)
        for (let news = translated.news(); news !== null; news = translated.news()) {
          await news
          translated.take()
        }
      })
  },
})

export const target = costTarget('cost/gateway translated responses', [
  ...PROVIDERS.flatMap((provider) =>
    ['chat/completions', 'generateContent'].map((method) => wholeRow(provider, method)),
  ),
  ...[...PROVIDERS, { ...anthropic, speaks: 'anthropic-bedrock' } as const].flatMap((provider) => [
    streamRow(provider, { limit: RESPONSE, families: eventsOf(provider) }),
    streamRow(provider, { limit: READ, families: readsOf(provider) }),
  ]),
])
