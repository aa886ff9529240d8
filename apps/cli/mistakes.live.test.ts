import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chownSync, copyFileSync, existsSync, realpathSync, statSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { delimiter, dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { closed, freePort, listening, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { auditHold } from './audit/hold.ts'
import { main } from './main.ts'
import { unreachableReason } from './shared/unreachable.ts'
import { printed, putResource } from './testing/commands.ts'
import { tokenMint } from './token/mint.ts'
import { startUp } from './up/up.ts'
import { validateResources } from './validate/validate.ts'

/** User without rights, as every Linux has it. */
const NOBODY = 65_534

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

test('line ends of Windows and $schema are not mistakes', async () => {
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
  ['a command like no other', () => ['xyzzy'], /^plat: unknown command 'xyzzy'; plat help lists the commands\n$/],
  ['a command without its group', () => ['watch'], /^plat: unknown command 'watch'; did you mean approvals watch\?\n$/],
  [
    'a missing argument',
    () => ['show'],
    /^plat: missing required argument 'decisionId'; add -help to see how it is written\n$/,
  ],
]

for (const [mistake, args, line] of COMMANDS) {
  test(`${mistake} is one line with the next step`, async (t) => {
    const dir = await folder(null, false)
    const text = await refusedLine(t, args(dir))
    assert.match(text, line)
    assert.equal(existsSync(join(dir, '.plat')), false)
  })
}

/** Runs a command line that must fail; resolves to what it wrote on stderr. */
async function refusedLine(t: TestContext, args: readonly string[]): Promise<string> {
  const written = t.mock.method(process.stderr, 'write', () => true)
  const code = await main(args)
  const text = written.mock.calls.map(({ arguments: [chunk] }) => String(chunk)).join('')
  written.mock.restore()
  assert.ok(code === 1 || code === 2, String(code))
  assert.doesNotMatch(text, /^\s+at /m)
  assert.equal(text.trim().split('\n').length, 1, text)
  return text
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

test('a program that is not a gateway behind the address is one line that names the address', async (t) => {
  const server = createServer((_, response) => response.writeHead(404).end('{"error":"not_found"}'))
  const url = `http://127.0.0.1:${await listening(server)}`
  t.after(() => closed(server))
  const tokenFile = join(tempFolder(), 'token')
  await writeFile(tokenFile, 'a-token')
  const at = ['-admin-url', url, '-token-file', tokenFile]
  const before = { ...process.env }
  t.after(() => {
    for (const name of ['PLAT_ADMIN_URL', 'PLAT_ADMIN_TOKEN_FILE']) delete process.env[name]
    Object.assign(process.env, before)
  })
  for (const command of [['approvals', 'list'], ['pins', 'list'], ['sessions']]) {
    const expected = `plat: ${url} responds with HTTP 404, but not as the admin API of a gateway; check host and port, which plat up prints as gateway\n`
    assert.equal(await refusedLine(t, [...command, ...at]), expected)
  }
})

/** Root writes everywhere, so the test runs the program as another user, who must be able to read this checkout. */
const isRoot = process.getuid?.() === 0
const isReadableByOthers = (folder: string): boolean =>
  (statSync(folder).mode & 0o001) !== 0 && (dirname(folder) === folder || isReadableByOthers(dirname(folder)))
const skip = isRoot && !isReadableByOthers(import.meta.dirname) && 'run by root in a folder that others cannot read'

test('a folder that cannot be written is one line with the path and the next step', { skip }, async () => {
  const dir = await folder(null)
  if (isRoot) chownSync(dir, 0, 0)
  await chmod(dir, 0o555)
  const plat = join(import.meta.dirname, 'bin/plat.mjs')
  const addresses = ['-listen', '127.0.0.1:0', '-identity-listen', '127.0.0.1:0']
  const { status, stderr } = spawnSync(process.execPath, [plat, 'up', dir, ...addresses], {
    encoding: 'utf8',
    ...(isRoot && { uid: NOBODY, gid: NOBODY, env: { PATH: process.env.PATH } }),
  })
  assert.equal(status, 1, stderr)
  assert.equal(stderr.trim().split('\n').length, 1, stderr)
  assert.match(
    stderr,
    /^plat: \/.*: permission denied \(EACCES\); give this user the right to write there, or name another directory$/m,
  )
})

test('a Node that is too old, without the pinned one, is one line with both versions and the next step', () => {
  const node = olderNode()
  const dir = realpathSync(tempFolder())
  copyFileSync(join(import.meta.dirname, '../../packages/process/launch.mjs'), join(dir, 'launch.mjs'))
  const start = `import(${JSON.stringify(join(dir, 'launch.mjs'))}).then(({ launch }) => launch(new URL('file:///none.mjs')))`
  const { status, stderr } = spawnSync(node ?? process.execPath, ['--input-type=module', '-e', start], {
    encoding: 'utf8',
  })
  assert.equal(status, 1)
  if (node === null) return
  const expected =
    /^Node 26 or newer is needed \(this is v\d+\.\d+\.\d+ on \w+-\w+\): install it, or run `npm ci` in .* to get one beside plat\.\n$/
  assert.match(stderr, expected)
})

/** The first Node on the PATH that cannot run plat; null: there is none. */
function olderNode(): string | null {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const node = join(folder, 'node')
    if (!existsSync(node)) continue
    const { stdout } = spawnSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' })
    if (Number.parseInt(stdout, 10) < 26) return node
  }
  return null
}

test('a misspelt agent in plat audit hold, and an expired token, are one line each', async (t) => {
  const dir = await folder('{"identity": {"leewaySeconds": 0}}')
  const agent = { image: 'example.com/a:1', tier: 'tier-0', policyRef: 'all', tools: [] }
  await putResource(dir, 'agents/default/assistant.yaml', 'Agent', agent)
  await putResource(dir, 'toolpolicies/default/all.yaml', 'ToolPolicy', { rules: [{ name: 'a', action: 'allow' }] })
  const up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  t.after(() => up.stop())
  const hold = async (target: string) =>
    (await printed((output) => auditHold({ dir, target, reason: 'r', output: 'table' }, output))).text
  const line = 'warning: no agent default/asistant: did you mean default/assistant?'
  assert.equal((await hold('agent:default/asistant')).split('\n')[0], line)
  assert.equal((await hold('session:default/asistant/s1')).split('\n')[0], line)
  assert.doesNotMatch(await hold('agent:assistant'), /warning/)

  const minting = { dir, agent: 'assistant', session: 's1', scope: [], ttl: '1s', format: 'token' } as const
  const [note = '', token] = (await printed((output) => tokenMint(minting, output))).text.split('\n')
  assert.equal(
    note,
    '-ttl: gateways accept a token for identity.leewaySeconds longer (30 s by default), as clocks differ',
  )
  const messages = async () => {
    const all = ['mcp', 'llm/v1/models'].map(async (path) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: '*/*' }
      const post = { method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' }
      const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/${path}`, { headers, ...(path === 'mcp' && post) })
      const { error } = JSON.parse(await response.text())
      return response.status === 401 ? String(error.message) : ''
    })
    return await Promise.all(all)
  }
  await until(async () => (await messages()).every((message) => message !== ''), 'the token to expire')
  for (const message of await messages())
    assert.match(message, /token has expired; mint a new one \(plat token mint <agent>\), or use plat run/)
})
