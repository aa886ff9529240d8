import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { EXIT_CODES } from '@plat/ledger'
import { fillLedger } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import type { Command } from 'commander'
import { main, program } from './main.ts'
import { EXIT, exitCodeRows, exitCodesLine, findings } from './shared/exit-codes.ts'
import { terminal } from './shared/output.ts'
import { putResource } from './testing/commands.ts'

const PAGE = path.resolve(import.meta.dirname, '../../docs/cli.md')

let dir = ''
const envBefore = { ...process.env }
const at = (name: string) => path.join(dir, name)

before(async () => {
  dir = tempFolder()
  await writeFile(at('gateway.json'), '{"listen": 1}')
  await putResource(dir, 'toolpolicies/default/p.yaml', 'ToolPolicy', { rules: [{ name: 'a' }] })
  await writeFile(at('license.jws'), 'no license')
  await writeFile(at('mcp.json'), '{"mcpServers": {"a": {"unknown": true}}}')
  await fillLedger(at('audit.jsonl'), 3)
  const text = readFileSync(at('audit.jsonl'), 'utf8')
  await writeFile(at('broken.jsonl'), text.replace(/"hash":"./, '"hash":"x'))
})

after(() => {
  for (const name of Object.keys(process.env)) if (!(name in envBefore)) delete process.env[name]
  Object.assign(process.env, envBefore)
})

beforeEach((t) => {
  process.env.PLAT_CONTEXTS = at('contexts.json')
  if (!('mock' in t)) return
  t.mock.method(terminal, 'out', () => {})
  t.mock.method(terminal, 'err', () => {})
  t.mock.method(process.stderr, 'write', () => true)
})

/** Commands without commands in them, with their words. */
function leaves(command: Command, words: readonly string[] = []): { words: readonly string[]; command: Command }[] {
  return command.commands.flatMap((one) => {
    const own = [...words, one.name()]
    return one.commands.length > 0 ? leaves(one, own) : [{ words: own, command: one }]
  })
}

test('docs/cli.md has the codes, and what commands find, as the table has them', () => {
  const text = readFileSync(PAGE, 'utf8')
  for (const [code, meaning] of Object.entries(exitCodeRows)) assert.ok(text.includes(`| ${code} | ${meaning} |`), code)
  for (const [name, { done, found }] of Object.entries(findings))
    assert.ok(text.includes(`| \`${name}\` | ${done} | ${found} |`), name)
  assert.deepEqual(
    [EXIT_CODES.valid, EXIT_CODES.usage, EXIT_CODES.broken],
    [EXIT.done, EXIT.usage, EXIT.found],
    'codes of the ledger are the same',
  )
})

test('the help of every command that checks something says when it ends with 3', () => {
  const all = leaves(program()).map(({ words, command }) => [words.join(' '), command] as const)
  for (const [name, meanings] of Object.entries(findings)) {
    const [, command] = all.find(([words]) => words === name) ?? []
    assert.ok(command?.description().includes(exitCodesLine(meanings)), name)
  }
})

test('a wrong command line is 2 for every command', async () => {
  for (const { words } of leaves(program()))
    assert.equal(await main([...words, '-no-such-flag']), EXIT.usage, words.join(' '))
})

test('a gateway that does not respond is 1 for every command that needs one', async () => {
  const needing = leaves(program()).filter(
    ({ words, command }) =>
      words[0] !== 'context' && isRemote(command) && !['approvals watch', 'run'].includes(words.join(' ')),
  )
  assert.ok(needing.length > 20)
  await writeFile(at('token'), 'a-token')
  await writeFile(at('policies.json'), '{"version": 1, "policies": []}')
  const to = ['-admin-url', 'http://127.0.0.1:9', '-token-file', at('token')]
  const lines = needing.map(({ words, command }) => {
    const required = command.registeredArguments.filter((one) => one.required)
    const needed = command.options.filter(({ mandatory }) => mandatory)
    const flags = needed.flatMap(({ long }) => [`${long}`, at('policies.json')])
    return [
      ...words,
      ...required.map((one) => ARGUMENTS[`${words.join(' ')} ${one.name()}`] ?? ARGUMENTS[one.name()] ?? 'x'),
      ...flags,
      ...to,
    ]
  })
  const codes = await Promise.all(lines.map((line) => main(line)))
  for (const [index, code] of codes.entries()) assert.equal(code, EXIT.failed, String(lines[index]))
})

/** Whether a command accepts the flags that select a gateway. `approvals watch` does, and waits until the gateway responds. */
function isRemote({ options }: Command): boolean {
  return ['--dir', '--token-file', '--admin-url'].every((flag) => options.some(({ long }) => long === flag))
}

/** Arguments that a command reads before it talks to the gateway, by name, or by command and name. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  seq: '1',
  target: 'agent:default/a',
  'audit hold target': 'default/a',
  server: 'default/a',
}

test('a failed check exits with 3, and an unreadable file to verify with 2', async () => {
  const found: readonly (readonly string[])[] = [
    ['validate', dir],
    ['config', 'validate', at('gateway.json')],
    ['posture', at('gateway.json')],
    ['license', 'show', at('license.jws')],
    ['import', 'mcp-json', at('mcp.json'), at('imported')],
    ['audit', 'verify', at('broken.jsonl')],
  ]
  for (const words of found) assert.equal(await main(words), EXIT.found, words.join(' '))
  assert.equal(await main(['audit', 'verify', at('audit.jsonl')]), EXIT.done)
  assert.equal(await main(['audit', 'verify', at('missing.jsonl')]), EXIT.usage)
})
