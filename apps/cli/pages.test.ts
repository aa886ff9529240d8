import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import type { Command } from 'commander'
import { doubleDashes, partAtDashes } from './arguments.ts'
import { program } from './main.ts'

const DOCS = path.resolve(import.meta.dirname, '../../docs')

/** Command lines of `plat` in the shell blocks of a page, also those that run in a pod. */
function linesOf(page: string): readonly string[] {
  const text = readFileSync(path.join(DOCS, page), 'utf8')
  const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, lines = '']) => lines)
  return blocks.flatMap((block) =>
    [...block.matchAll(/(?:^|&& |-- )plat ([^\n&|]+)/gm)].map(([, words = '']) => words.trim()),
  )
}

/** The problem of a command line. Returns null if the command and its flags exist. */
function wrongIn(line: string): string | null {
  const words = doubleDashes(partAtDashes(line.match(/"[^"]*"|'[^']*'|\S+/g) ?? []).own)
  let command: Command = program()
  let at = 0
  for (; at < words.length; at++) {
    const inner = command.commands.find((one) => one.name() === words[at])
    if (inner === undefined) break
    command = inner
  }
  if (at === 0 || command.commands.length > 0) return `no such command: ${words[at] ?? ''}`
  let given = 0
  for (; at < words.length; at++) {
    const word = words[at] ?? ''
    if (!word.startsWith('-')) {
      given++
      continue
    }
    const [name = ''] = word.split('=')
    const option = command.options.find((one) => one.long === name || one.short === name)
    if (option === undefined) return `no such flag: ${name}`
    if (!option.isBoolean() && !word.includes('=')) at++
  }
  return given <= command.registeredArguments.length ? null : 'too many arguments'
}

for (const page of [
  'runbooks.md',
  'kubernetes.md',
  'cli.md',
  'import.md',
  'simulation.md',
  'budgets.md',
  'ledger.md',
]) {
  test(`every command line of plat in docs/${page} is one that exists`, () => {
    const lines = linesOf(page)
    assert.ok(lines.length >= 2)
    for (const line of lines) assert.equal(wrongIn(line), null, `plat ${line}`)
  })
}

/** Rows of the table of commands: as it is written, and what it does. */
function rowsOf(command: Command, path: readonly string[]): string[] {
  return command.commands.flatMap((one) => {
    const own = [...path, one.name()]
    if (one.commands.length > 0) return rowsOf(one, own)
    const given = one.registeredArguments.map((argument) => {
      const name = `${argument.name()}${argument.variadic ? '...' : ''}`
      return argument.required ? ` <${name}>` : ` [${name}]`
    })
    return [`| \`plat ${own.join(' ')}${given.join('')}\` | ${one.summary()} |`]
  })
}

test('docs/cli.md has every command in the order of the help', () => {
  const rows = readFileSync(path.join(DOCS, 'cli.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| `plat '))
  assert.deepEqual(rows, rowsOf(program(), []))
})

test('a page with a command line that does not exist fails the check', () => {
  assert.equal(wrongIn('approvals frobnicate'), 'no such command: frobnicate')
  assert.equal(wrongIn('approvals list -frobnicate'), 'no such flag: --frobnicate')
  assert.equal(wrongIn('config validate a b'), 'too many arguments')
})
