import { costTarget, json, type Row, text } from '../../../test/fuzz/cost.ts'
import { findInJson } from '../features/dlp/json/strings.ts'
import { compileProfile } from '../features/dlp/profile.ts'
import { TextStream } from '../features/dlp/stream.ts'
import { DEFAULTS } from '../features/dlp/testing/profiles.ts'
import { parseRobots } from '../features/web/read/robots-rules.ts'
import { readMessages } from './model/translate/messages.ts'
import { SseSplitter } from './wire/sse.ts'

const events: Row['families'] = {
  'empty events': (n) => '\n'.repeat(n),
  'one line': (n) => `data: ${'a'.repeat(n)}\n\n`,
  lines: (n) => `${'data:\n'.repeat(n / 6)}\n`,
  'carriage returns': (n) => '\r'.repeat(n),
  'never complete': (n) => 'a\r'.repeat(n / 2),
}

/** Reads the text in pieces of one byte: what was kept from piece to piece may not be copied again. */
function splitBytes(input: string): void {
  const splitter = new SseSplitter()
  const bytes = Buffer.from(input)
  for (let at = 0; at < bytes.length; at++) splitter.push(bytes.subarray(at, at + 1))
}

const MIB = 1024 * 1024
/** Largest piece in which bytes arrive. */
const SOCKET_CHUNK = 64 * 1024

const profile = compileProfile('cost', DEFAULTS)
const scanner = profile.response?.scanner
if (scanner === undefined) throw new Error('the default profile scans nothing')

const rows: readonly Row[] = [
  {
    name: 'server-sent events',
    limit: SOCKET_CHUNK,
    families: events,
    run: (input) => new SseSplitter().push(Buffer.from(input)),
  },
  { name: 'server-sent events, byte by byte', limit: SOCKET_CHUNK / 4, families: events, run: splitBytes },
  {
    name: 'messages of models',
    limit: MIB,
    families: { parts: (n) => 'a'.repeat(n / 32) },
    run: (input) => {
      const content = [...input].map((text) => ({ type: 'text', text }))
      readMessages([
        { role: 'user', content: 'a' },
        { role: 'user', content },
      ])
    },
  },
  {
    name: 'redaction of JSON',
    limit: MIB / 4,
    families: { ...json, ...text },
    run: (input) => findInJson(Buffer.from(input), scanner, MIB),
  },
  {
    // One read of a socket brings about a thousand pieces at most.
    name: 'redaction of a text in pieces',
    limit: SOCKET_CHUNK / 4,
    families: { ...json, ...text },
    run: (input) => {
      const stream = new TextStream({ scanner, carry: 256, isRedacted: () => true, isJson: true })
      for (let at = 0; at < input.length; at += 16) stream.push(input.slice(at, at + 16))
      stream.end()
    },
  },
  {
    name: 'robots.txt',
    limit: SOCKET_CHUNK,
    families: { ...text, rules: (n) => `User-agent: *\n${'Disallow: /a*b\n'.repeat(n / 15)}` },
    run: (input) => parseRobots(input, 'plat'),
  },
]

export const target = costTarget('cost/gateway', rows)
