import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { closed, freePort, listening, tempFolder } from '@plat/testkit/local'
import { main } from './main.ts'
import { unreachableReason } from './shared/unreachable.ts'
import { printed } from './testing/commands.ts'
import { startUp } from './up/up.ts'
import { validateResources } from './validate/validate.ts'

/** Exit code and lines of a command that must fail, whether it throws or prints. */
async function failed(run: () => Promise<unknown>): Promise<string> {
  return await run().then(
    (value) => assert.fail(`did not fail: ${String(value)}`),
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )
}

async function folder(gateway: string | null, resources = true): Promise<string> {
  const dir = tempFolder()
  if (resources) await mkdir(join(dir, 'resources'))
  if (gateway !== null) await writeFile(join(dir, 'gateway.json'), gateway)
  return dir
}

/** Mistakes in the text of gateway.json, each with line and fix. */
const TEXTS: readonly (readonly [mistake: string, text: string, line: RegExp])[] = [
  ['a comment', '{\n  // mine\n  "sessionBudgetUSD": 1\n}', /:2: a comment, which JSON does not have; remove it$/],
  ['a comment of YAML', '{\n# mine\n}', /:2: a comment, .*; remove it$/],
  ['a trailing comma', '{\n  "sessionBudgetUSD": 1,\n}', /:3: a comma before the closing bracket; remove it$/],
  ['a byte order mark', '\uFEFF{}', /:1: a byte order mark; save the file as UTF-8 without it$/],
  ['single quotes', "{\n  'listen': 1}", /:2: a single quote; write names and texts in double quotes$/],
  ['a name without quotes', '{\n  listen: 1}', /:2: a name without quotes; write it in double quotes$/],
  ['a missing comma', '{\n  "a": {}\n  "b": {}}', /:3: a comma is missing before this$/],
  ['a missing bracket', '{\n  "a": {}\n', /:3: the value ends too early$/],
  ['the same key twice', '{"a": 1,\n "a": 2}', /:2: a duplicate member name$/],
  ['no object', '[]', /: must hold a JSON object$/],
]

for (const [mistake, text, line] of TEXTS) {
  test(`${mistake} in gateway.json is one line with file, line and fix, for plat validate and plat up`, async () => {
    const dir = await folder(text)
    const addresses = { listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' as const }
    for (const run of [
      () => printed((output) => validateResources({ dir }, output)),
      () => startUp({ dir, ...addresses }),
    ]) {
      const message = await failed(run)
      assert.match(message, line)
      assert.ok(message.startsWith(join(dir, 'gateway.json')) && !message.includes('\n'), message)
    }
  })
}

test('line ends of Windows and $schema are no mistakes', async () => {
  const dir = await folder('{\r\n"$schema": "x",\r\n"sessionBudgetUSD": 1\r\n}\r\n')
  const { code, text } = await printed((output) => validateResources({ dir }, output))
  assert.equal(code, 0, text)
})

/** Command lines that fail before anything starts, each with the line on stderr. */
const COMMANDS: readonly (readonly [mistake: string, args: (dir: string) => readonly string[], line: RegExp])[] = [
  ['a folder without resources', (dir) => ['up', dir], /has no resources\/ folder; name a directory .* plat init$/m],
  ['nothing to validate', (dir) => ['validate', dir], /has no resources\/ folder; name a directory .* plat init$/m],
  ['a port alone', (dir) => ['up', dir, '-listen', '8180'], /write -listen 127\.0\.0\.1:8180 for this machine/],
  [
    'no running plat',
    (dir) => ['run', '-dir', dir, 'a', '--', 'true'],
    /no running plat found in .*; start one with plat up/,
  ],
  ['no program to run', (dir) => ['run', '-dir', dir, 'a'], /say what to run: plat run <agent> -- <command>/],
  ['a misspelt command', () => ['validat'], /^plat: unknown command 'validat'; did you mean validate\?\n$/],
  ['a misspelt flag', (dir) => ['up', dir, '-lisen', '1'], /^plat: unknown option '-lisen'; did you mean -listen\?\n$/],
  ['a command like no other', () => ['xyzzy'], /^plat: unknown command 'xyzzy'; add -help to see how it is written\n$/],
  [
    'a missing argument',
    () => ['show'],
    /^plat: missing required argument 'decisionId'; add -help to see how it is written\n$/,
  ],
]

for (const [mistake, args, line] of COMMANDS) {
  test(`${mistake} is one line with the next step`, async (t) => {
    const dir = await folder(null, false)
    const written = t.mock.method(process.stderr, 'write', () => true)
    const code = await main(args(dir))
    const text = written.mock.calls.map(({ arguments: [chunk] }) => String(chunk)).join('')
    written.mock.restore()
    assert.ok(code === 1 || code === 2, String(code))
    assert.match(text, line)
    assert.doesNotMatch(text, /^\s+at /m)
    assert.equal(existsSync(join(dir, '.plat')), false)
  })
}

test('a port in use is one line with the flag to change', async (t) => {
  const server = createServer()
  const port = await listening(server)
  t.after(() => closed(server))
  const dir = await folder(null)
  const listen = `127.0.0.1:${port}`
  const message = await failed(() => startUp({ dir, listen, identityListen: '127.0.0.1:0', log: 'file' }))
  assert.equal(message, `port ${port} is in use; choose another address with -listen 127.0.0.1:<port>`)
})

test('an address that does not respond names what is in between', async () => {
  const url = `http://127.0.0.1:${await freePort()}`
  const proxy = { NODE_USE_ENV_PROXY: '1', http_proxy: 'http://127.0.0.1:1' }
  assert.equal(unreachableReason(url, {}), 'does not respond')
  assert.equal(unreachableReason('127.0.0.1:8080', {}), 'is no URL such as http://127.0.0.1:8080')
  assert.match(unreachableReason(url, proxy), /through the proxy of HTTP_PROXY; add 127\.0\.0\.1 to NO_PROXY/)
  assert.equal(unreachableReason(url, { ...proxy, NO_PROXY: 'localhost, 127.0.0.1' }), 'does not respond')
})
