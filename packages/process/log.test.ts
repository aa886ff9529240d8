import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { createLog, type LogLine } from './log.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
after(() => rmSync(folder, { recursive: true }))
let files = 0

function logInto(level: string) {
  const file = path.join(folder, 'logs', `${files++}.jsonl`)
  const log = createLog({ service: 'gateway', level, destination: file })
  const text = () => readFileSync(file, 'utf8')
  const lines = (): Record<string, unknown>[] =>
    text()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  return { log, file, text, lines }
}

const JWT = `eyJ${'hbGciOiJFZERTQSJ9'}.${'eyJzdWIiOiJhIn0'}.${'c2lnbmF0dXJl'}`

test('a line is JSON with level, time, service, fields and message, and is written at once', () => {
  const { log, lines, file } = logInto('info')
  log.info({ port: 8080 }, 'listening')
  const [line] = lines()
  const { time, ...rest } = line ?? {}
  assert.deepEqual(rest, { level: 'info', service: 'gateway', port: 8080, msg: 'listening' })
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.equal(statSync(file).mode & 0o777, 0o600)
})

test('an unknown level means info', () => {
  const { log, lines } = logInto('chatty')
  log.debug({}, 'unseen')
  log.info({}, 'seen')
  assert.deepEqual(
    lines().map((line) => line.msg),
    ['seen'],
  )
})

test('a child adds its fields to every line', () => {
  const { log, lines } = logInto('debug')
  log.child({ listener: 'main' }).child({ route: 'mcp' }).debug({ n: 1 }, 'x')
  const [line] = lines()
  assert.deepEqual([line?.listener, line?.route, line?.n], ['main', 'mcp', 1])
})

test('a line is passed on as well, with the fields of its log and without secrets', () => {
  const passed: LogLine[] = []
  const log = createLog({
    service: 'gateway',
    destination: path.join(folder, 'passed.jsonl'),
    onLine: (line) => passed.push(line),
  })
  log.debug({}, 'unseen')
  log.child({ server: 'notes' }).warn({ token: 'abc-secret' }, `cannot be reached with ${JWT}`)
  assert.deepEqual(passed, [
    { level: 'warn', fields: { server: 'notes', token: '[removed]' }, message: 'cannot be reached with [removed]' },
  ])
})

test('secrets by name, at any depth and in any spelling, never reach a line', () => {
  const { log, text } = logInto('info')
  const headers = { Authorization: 'Bearer abc-secret', 'Set-Cookie': ['s=abc-secret'], DPoP: 'abc-secret' }
  log.child({ adminToken: 'abc-secret' }).info(
    {
      headers,
      access_token: 'abc-secret',
      clientSecret: 'abc-secret',
      list: [{ 'x-api-key': 'abc-secret' }],
      arguments: { note: 'abc-secret' },
    },
    'x',
  )
  assert.ok(!text().includes('abc-secret'), text())
  assert.ok(text().includes('[removed]'))
})

test('tokens inside messages, strings and errors are removed', () => {
  const { log, text, lines } = logInto('info')
  log.warn({ note: `got ${JWT}`, error: new Error('no', { cause: new Error(`Bearer ${JWT}`) }) }, `bad token ${JWT}`)
  assert.ok(!text().includes(JWT))
  const [line] = lines()
  assert.equal(line?.msg, 'bad token [removed]')
  assert.match(JSON.stringify(line?.error), /"message":"no".*"cause":\{.*Bearer \[removed\]/)
})

test('values that only resemble secrets stay: counts, kinds and places', () => {
  const { log, lines } = logInto('info')
  log.info({ maxTokens: 12, tokenURL: 'https://a/b', trustedTokens: null, at: new Date(0), big: 1n }, 'x')
  const { maxTokens, tokenURL, trustedTokens, at, big } = lines()[0] ?? {}
  assert.deepEqual(
    [maxTokens, tokenURL, trustedTokens, at, big],
    [12, 'https://a/b', null, '1970-01-01T00:00:00.000Z', '1'],
  )
})

test('a circular or huge field cannot break or flood a line', () => {
  const { log, text, lines } = logInto('info')
  const loop: Record<string, unknown> = { name: 'x'.repeat(100_000) }
  loop.self = loop
  log.error({ loop }, 'x')
  assert.equal(lines().length, 1)
  assert.ok(text().length < 100_000)
})
