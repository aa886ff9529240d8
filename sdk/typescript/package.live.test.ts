import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { tempFolder } from '@plat/testkit/local'
import { type GatewayFixture, startGround } from './testing/fixture.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

let fixture: GatewayFixture
/** A folder in which the packed package is installed, and nothing else. */
let consumer = ''

before(async () => {
  const built = path.join(tempFolder(), 'package')
  await run(process.execPath, [path.join(root, 'tools/sdk/run.ts'), built])
  const [packed] = JSON.parse((await run('npm', ['pack', '--json', '--ignore-scripts'], { cwd: built })).stdout)
  consumer = tempFolder()
  await writeFile(path.join(consumer, 'package.json'), '{"private": true, "type": "module"}')
  const quietly = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund']
  await run('npm', ['install', ...quietly, path.join(built, packed.filename)], { cwd: consumer })
  fixture = await startGround()
})

after(() => fixture.close())

/** The oldest Node on the PATH that the package is for. */
async function oldestNode(): Promise<string> {
  const places = (process.env.PATH ?? '').split(path.delimiter).map((dir) => path.join(dir, 'node'))
  const found = await Promise.all(
    [process.execPath, ...places.filter((place) => existsSync(place))].map(async (place) => {
      // A binary that does not run has no version.
      const { stdout } = await run(place, ['--version']).catch(() => ({ stdout: '' }))
      const [major = 0, minor = 0] = stdout.trim().slice(1).split('.').map(Number)
      return { place, order: major * 1000 + minor }
    }),
  )
  const fit = found.filter(({ order }) => order >= 20_012).sort((a, b) => a.order - b.order)
  return fit[0]?.place ?? assert.fail('no Node')
}

/** A file with a token that counts, and the variables that lead a program to the gateway. */
async function environment(): Promise<NodeJS.ProcessEnv> {
  const file = path.join(consumer, 'token')
  const { token } = await fixture.source().issue({ jkt: null, signal: new AbortController().signal })
  await writeFile(file, token)
  return {
    PATH: process.env.PATH,
    PLAT_GATEWAY_URL: fixture.gateway.url,
    PLAT_IDENTITY_URL: fixture.identityURL,
    PLAT_PUBLIC_URL: 'https://gateway.example',
    PLAT_TOKEN_FILE: file,
  }
}

test('the packed package holds its code, its types and no dependency', async () => {
  const dir = path.join(consumer, 'node_modules/@plat/sdk')
  const { private: hidden, dependencies, exports } = JSON.parse(await readFile(path.join(dir, 'package.json'), 'utf8'))
  assert.deepEqual([hidden, dependencies], [undefined, undefined])
  assert.deepEqual(exports, { '.': { types: './lib/index.d.ts', default: './lib/index.js' } })
  for (const file of ['README.md', 'LICENSE', 'lib/index.js', 'lib/index.d.ts'])
    assert.ok(existsSync(path.join(dir, file)))
})

test('every export has an example', async () => {
  const lib = path.join(consumer, 'node_modules/@plat/sdk/lib')
  const files = (await readdir(lib, { recursive: true })).filter((name) => name.endsWith('.d.ts'))
  const types = (await Promise.all(files.map((name) => readFile(path.join(lib, name), 'utf8')))).join('\n')
  const sdk: Readonly<Record<string, unknown>> = await import(path.join(lib, 'index.js'))
  const without = Object.keys(sdk).filter((name) => {
    const [before = ''] = types.split(new RegExp(`export declare (?:class|function) ${name}\\b`))
    return !before.slice(before.lastIndexOf('/**')).includes('@example')
  })
  assert.deepEqual(without, [])
})

test('it works under the oldest Node: a bound session calls, exchanges and verifies', async () => {
  const program = `
    import { connect, createTokenVerifier, deniedBy, readClaims } from '@plat/sdk'
    const session = await connect({ dpop: true })
    const { url, fetch } = session.mcp('fixture')
    const post = (method, params = {}) => fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    const client = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    const { status } = await post('initialize', client)
    const { token } = await session.exchange({ audience: 'reports' })
    const trust = { jwksURL: process.env.PLAT_IDENTITY_URL + '/.well-known/jwks.json' }
    const verifier = createTokenVerifier({ trust, audience: 'reports', proof: 'none' })
    const { user } = await verifier.verifyToken(token)
    verifier.close()
    const denied = await session.fetch(session.openai('other').baseURL + '/models').catch(deniedBy)
    console.log(JSON.stringify({ status, user, bound: session.claims.jkt !== null, code: denied.code, name: denied.name }))
  `
  await writeFile(path.join(consumer, 'program.js'), program)
  const { stdout } = await run(await oldestNode(), ['program.js'], { cwd: consumer, env: await environment() })
  assert.deepEqual(JSON.parse(stdout), {
    status: 200,
    user: 'ada',
    bound: true,
    code: 'insufficient_scope',
    name: 'ScopeMissingError',
  })
})

test('a strict program compiles against its types, and misuse does not', async () => {
  const program = `
    import { type BrokerOptions, broker, connect, deniedBy, type DenialCode, DeniedError, type Session } from '@plat/sdk'
    export async function agent(options: BrokerOptions): Promise<Session> {
      const session = await connect({ gatewayURL: 'https://gateway.example', source: broker(options), dpop: true })
      const groups: readonly string[] = session.claims?.groups ?? []
      const { url }: { url: URL } = session.mcp(groups[0] ?? 'notes', { approvalWaitSeconds: 5 })
      await session.fetch(url, { method: 'POST', body: '{}' })
      const acting: Session = await session.delegate({ transaction: 'x' })
      // @ts-expect-error: claims are null where a forwarder has the token.
      session.claims.user
      // @ts-expect-error: one of the two, not both.
      await session.delegate({ transaction: 'x', session: 'y' })
      // @ts-expect-error: an exchange names its audience.
      await session.exchange({})
      return acting
    }
    export function codeOf(error: unknown): DenialCode | null {
      const denied: DeniedError | null = deniedBy(error)
      // @ts-expect-error: no such code.
      if (denied?.code === 'made_up') return null
      return denied?.code ?? null
    }
  `
  assert.equal(await compiled({ 'program.ts': program }, { skipLibCheck: false }), '')
})

/** Compiler output for files beside the installed package. */
async function compiled(files: Readonly<Record<string, string>>, more: object): Promise<string> {
  const compilerOptions = {
    ...{ target: 'es2023', lib: ['es2023'], module: 'nodenext', types: ['node'], noEmit: true, strict: true },
    ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, moduleDetection: 'force' },
    typeRoots: [path.join(root, 'node_modules/@types')],
    ...more,
  }
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(consumer, name), text)
  const config = JSON.stringify({ compilerOptions, files: Object.keys(files) })
  await writeFile(path.join(consumer, 'tsconfig.json'), config)
  const done = run(path.join(root, 'node_modules/.bin/tsc'), ['--project', consumer])
  return done.then(
    ({ stdout }) => stdout,
    ({ stdout }) => String(stdout),
  )
}

/** The official clients, which the package itself does not bring. */
async function withClients(): Promise<void> {
  for (const name of ['@modelcontextprotocol', '@anthropic-ai', 'openai']) {
    const place = path.join(consumer, 'node_modules', name)
    if (!existsSync(place)) await symlink(path.join(root, 'node_modules', name), place)
  }
}

test('the examples of docs/sdk.md compile', async () => {
  await withClients()
  const text = await readFile(path.join(root, 'docs/sdk.md'), 'utf8')
  const examples = [...text.matchAll(/```ts\n(.*?)```/gs)].map(([, code = '']) => code)
  assert.ok(examples.length >= 8)
  const before = `
    declare global {
      const session: import('@plat/sdk').Session
      const client: import('@modelcontextprotocol/client').Client
      const StreamableHTTPClientTransport: typeof import('@modelcontextprotocol/client').StreamableHTTPClientTransport
      const connect: typeof import('@plat/sdk').connect
    }
    export {}
  `
  const files = Object.fromEntries(examples.map((code, at) => [`example-${at}.ts`, code]))
  assert.equal(await compiled({ 'before.ts': before, ...files }, { skipLibCheck: true }), '')
})
