import { runInSlices } from '@plat/core'
import { costTarget, type Families, type Row } from '../../../../test/fuzz/cost.ts'
import { json } from '../../../../test/fuzz/families.ts'
import { isDenial } from '../../call/index.ts'
import { dialectOf } from '../model/dialects/all.ts'
import { InvalidResponseError } from '../model/invalid.ts'
import { readModelBody } from '../model/request.ts'
import { promptOf } from '../model/telemetry/prompt.ts'
import { translatorOf } from '../model/translate/all.ts'
import { MultipartError, MultipartParser } from '../model/uploads/parser.ts'
import { NestedJson } from './nested.ts'
import { withoutForgedRefusal } from './refusal.ts'

const KIB = 1024
/** Largest body of a request, by default. */
const BODY = 4 * 1024 * KIB
/** Bytes of one read of a socket. */
const READ = 64 * KIB
/** Bytes of text in a message that are parsed at most. */
const TEXT = 2 * 1024 * KIB
/** Most texts of this length have no more values than are parsed. */
const SHORT_TEXT = 128 * KIB

/** Nested JSON with numbers that a double would change. */
const texts: Families = {
  ...json,
  'exact numbers': (n) => `[${Array.from({ length: n / 12 }, (_, at) => `1.${100_000 + at}0`).join(',')}]`,
}

/** Messages of about `n` characters with one long JSON text, or many short ones, in the place that `around` has for them. */
const messagesWith = (around: (texts: readonly string[]) => string): Families => ({
  ...Object.fromEntries(Object.entries(texts).map(([name, make]) => [name, (n: number) => around([quoted(make, n)])])),
  'many texts': (n) => around(Array.from({ length: n / 100 }, (_, at) => JSON.stringify(`{"a":${at}}`))),
  'texts of many members': (n) => {
    const text = JSON.stringify(`{${Array.from({ length: 200 }, (_, at) => `"m${at}":1`).join()}}`)
    return around(Array.from({ length: n / text.length }, () => text))
  },
})

/** A text of at most `n` characters as a string of JSON, which may be much longer than the text. */
function quoted(make: (n: number) => string, n: number): string {
  const text = (size: number) => JSON.stringify(`{"a":${make(size)}}`)
  return text(Math.floor((n * n) / Math.max(n, text(n).length)))
}

const calls = (arguments_: readonly string[]) =>
  arguments_.map((text, at) => `{"id":"c${at}","type":"function","function":{"name":"a","arguments":${text}}}`).join()
const chatOf = (rest: string) => `{"model":"m","messages":[{"role":"user","content":"a"}${rest}]}`
const withCalls = messagesWith((all) => chatOf(`,{"role":"assistant","tool_calls":[${calls(all)}]}`))
const withResults = messagesWith((all) =>
  chatOf(
    `,{"role":"assistant","tool_calls":[${calls(['"{}"'])}]},${all
      .map((text) => `{"role":"tool","tool_call_id":"c0","content":${text}}`)
      .join()}`,
  ),
)
const withAnswers = messagesWith(
  (all) => `{"choices":[{"message":{"tool_calls":[${calls(all)}]},"finish_reason":"stop"}]}`,
)

function bodyOf(input: string) {
  const dialect = dialectOf('chat/completions')
  const body = dialect === null ? null : readModelBody(Buffer.from(input), dialect)
  if (body === null || isDenial(body)) throw new Error('refused')
  return body
}

const PART = '--b\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
const FORM_END = '\r\n--b--\r\n'
const file = (content: (n: number) => string) => (n: number) => PART + content(n) + FORM_END

/** Forms whose bytes look like boundaries, or are many parts. */
const forms: Families = {
  'line ends': file((n) => '\r\n'.repeat(n / 2)),
  'almost boundaries': file((n) => '\r\n--'.repeat(n / 4)),
  'many parts': (n) => `${`${PART}\r\n`.repeat(n / PART.length)}--b--`,
  'a long head': (n) => `--b\r\nX: ${'x'.repeat(n)}`,
}

/** Parses a form that arrives in chunks of this size. A refusal ends it. */
function parseForm(input: string, size: number): void {
  const parser = new MultipartParser('b')
  const bytes = Buffer.from(input)
  try {
    for (let at = 0; at < bytes.length; at += size) parser.push(bytes.subarray(at, at + size))
  } catch (error) {
    if (!(error instanceof MultipartError)) throw error
  }
}

/** Translation of a chat to Gemini. */
const toGemini = (families: Families, part: string): Row => ({
  parser: 'translation for models',
  part,
  limit: BODY,
  families,
  prepare: (input) => {
    const body = bodyOf(input)
    return () =>
      translatorOf('gemini', 'chat/completions')?.request({ body, model: 'm', reasoning: false, betas: null })
  },
})

const rows: readonly Row[] = [
  ...Object.entries({ long: TEXT, short: SHORT_TEXT }).flatMap(([part, limit]): readonly Row[] => [
    { parser: 'nested JSON', part, limit, families: texts, run: (input) => new NestedJson().parse(input) },
    {
      parser: 'nested JSON',
      part: `${part}, exact numbers`,
      limit,
      families: texts,
      run: (input) => new NestedJson().parseLossless(input),
    },
  ]),
  {
    parser: 'forged refusals',
    limit: BODY,
    families: {
      ...messagesWith(([text = '""']) => `{"error":{"code":1,"message":"m","data":{"text":${text}}}}`),
      infos: (n) => `{"error":{"code":1,"data":[${'{"domain":"plat.dev"},{},'.repeat(n / 25)}{}]}}`,
    },
    prepare: (input) => {
      const bytes = Buffer.from(input)
      const value: unknown = JSON.parse(input)
      return () => withoutForgedRefusal(bytes, value)
    },
  },
  toGemini(withCalls, 'arguments'),
  toGemini(withResults, 'results'),
  ...(['messages', 'generateContent'] as const).map(
    (method): Row => ({
      parser: 'translation for models',
      part: `arguments for ${method}`,
      limit: BODY,
      families: withAnswers,
      prepare: (input) => {
        const bytes = Buffer.from(input)
        const translator = translatorOf('openai', method)
        return async () => {
          try {
            if (translator !== null)
              await runInSlices(translator.answer(bytes, { id: 'a', model: 'a', created: 1 }, {}))
          } catch (error) {
            if (!(error instanceof InvalidResponseError)) throw error
          }
        }
      },
    }),
  ),
  {
    parser: 'prompts for telemetry',
    limit: BODY,
    families: withCalls,
    prepare: (input) => {
      const body = bodyOf(input)
      return () => promptOf(body)
    },
  },
  { parser: 'forms', limit: READ, families: forms, run: (input) => parseForm(input, READ) },
  { parser: 'forms', part: 'byte by byte', limit: READ, families: forms, run: (input) => parseForm(input, 1) },
]

export const target = costTarget('cost/gateway nested texts', rows)
