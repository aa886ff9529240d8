import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { TerminalLog } from './terminal-log.ts'

function setUp() {
  const clock = new TestClock()
  const lines: string[] = []
  const terminal = new TerminalLog({ logFile: '.plat/logs/gateway.jsonl', print: (line) => lines.push(line), clock })
  return { clock, lines, terminal }
}

const unreachable = (server: string) =>
  ({ level: 'warn', fields: { server, reason: 'refused', port: 9 }, message: 'cannot be reached' }) as const

test('warnings, errors and their end are printed, other lines and those of the start are not', () => {
  const { lines, terminal } = setUp()
  terminal.onLine(unreachable('default/early'))
  terminal.begin()
  terminal.onLine({ level: 'info', fields: { servers: 2 }, message: 'servers loaded' })
  terminal.onLine(unreachable('default/notes'))
  terminal.onLine({ level: 'info', fields: { server: 'default/notes', recovered: true }, message: 'can be reached' })
  terminal.onLine({ level: 'error', fields: {}, message: 'lost' })
  assert.deepEqual(lines, [
    'warning: cannot be reached (server: default/notes, reason: refused, port: 9)',
    'fixed: can be reached (server: default/notes)',
    'error: lost',
  ])
})

test('a line is printed once a minute, and of many lines ten', () => {
  const { clock, lines, terminal } = setUp()
  terminal.begin()
  for (let times = 0; times < 3; times++) terminal.onLine(unreachable('default/notes'))
  assert.equal(lines.length, 1)
  for (let number = 0; number < 50; number++) terminal.onLine(unreachable(`default/${number}`))
  assert.equal(lines.length, 11)
  assert.equal(lines.at(-1), 'more warnings are in .plat/logs/gateway.jsonl')
  clock.advance(60_000)
  terminal.onLine(unreachable('default/notes'))
  assert.equal(lines.length, 12)
})

test('text of others cannot control the terminal or fill it', () => {
  const { lines, terminal } = setUp()
  terminal.begin()
  terminal.onLine({ level: 'warn', fields: { text: `\u001b[2J${'x'.repeat(1000)}` }, message: 'a\nb' })
  assert.match(lines.join(), /^warning: a\?b \(text: \?\[2Jx{196}…\)$/)
})
