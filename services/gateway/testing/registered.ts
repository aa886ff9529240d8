import assert from 'node:assert/strict'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Log } from '@plat/process'
import type { AuthEntry } from '@plat/resources/rendered'
import type { TestIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { denialIn } from '@plat/testkit/mcp/denial'
import { started } from './started.ts'

/** Entry of a server in the registry. */
export interface ServerOptions {
  readonly url: string
  readonly auth: AuthEntry
  readonly caPEM?: string
  readonly pins?: object
}

/** A gateway with a registry and credential files that the test writes. */
export interface RegistryFixture {
  readonly url: string
  readonly issuer: TestIssuer
  /** Calls a tool of a server; the answer's text, and the word of its error. */
  call(server: string, token?: string): Promise<{ readonly text: string; readonly error: string | null }>
  /** Writes a credential file; null removes it. */
  secret(file: string, text: string | null): Promise<void>
  /** Writes the registry anew: servers of namespace `default`, or any text. */
  publish(servers: Readonly<Record<string, ServerOptions>> | string): Promise<void>
  /** Everything that was logged and recorded so far. */
  written(): Promise<string>
}

const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{}}}'

/** Starts it with files that are read once a second. `config` is laid over its gateway.json. */
export async function setUpRegistry(
  t: TestContext,
  setup: {
    readonly servers: Readonly<Record<string, ServerOptions>>
    readonly secrets?: Readonly<Record<string, string>>
    readonly config?: object
  },
): Promise<RegistryFixture> {
  const dir = tempFolder()
  const place = { upstreamsFile: join(dir, 'upstreams.json'), upstreamCredentialsDir: join(dir, 'credentials') }
  const lines: string[] = []
  const line = (fields: object, message: string) => void lines.push(JSON.stringify({ ...fields, message }))
  const log: Log = { debug: line, info: line, warn: line, error: line, child: () => log }
  // Whole or not at all, as the operator writes: a gateway that looks meanwhile must not find half of a file.
  const put = async (path: string, text: string) => {
    await writeFile(join(dir, 'new'), text)
    await rename(join(dir, 'new'), path)
  }
  const secret: RegistryFixture['secret'] = (file, text) => {
    const path = join(place.upstreamCredentialsDir, file)
    return text === null ? rm(path) : put(path, text)
  }
  const publish: RegistryFixture['publish'] = (servers) =>
    put(place.upstreamsFile, typeof servers === 'string' ? servers : JSON.stringify(registryOf(servers)))
  await mkdir(place.upstreamCredentialsDir)
  for (const [file, text] of Object.entries(setup.secrets ?? {})) await secret(file, text)
  await publish(setup.servers)
  const auditPath = join(dir, 'audit.jsonl')
  const own = { ...place, upstreams: {}, auditPath, policyReloadSeconds: 1, ...setup.config }
  const { gateway, issuer } = await started(t, own, false, { log })
  return {
    url: gateway.url,
    issuer,
    secret,
    publish,
    written: async () => lines.join('\n') + (await readFile(auditPath, 'utf8')),
    async call(server, token = issuer.token({ scope: `tools:${server}` })) {
      const response = await fetch(`${gateway.url}/mcp/${server}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
        },
        body: CALL,
      })
      const text = await response.text()
      assert.ok(text.startsWith('{'), text)
      const code = denialIn(JSON.parse(text))?.data.error
      return { text, error: code === undefined ? null : String(code) }
    },
  }
}

function registryOf(servers: Readonly<Record<string, ServerOptions>>): object {
  const fixed = { namespaces: [], implicit: false, trust: 'trusted', dataClass: 'internal' }
  const entries = Object.entries(servers).map(([name, wish]) => [`default/${name}`, { ...fixed, ...wish }])
  return { version: 1, servers: Object.fromEntries(entries), bindings: {}, agentWeb: {} }
}
