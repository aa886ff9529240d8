import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** A customer's identity provider: `oidc-provider` in a separate process, with one client of grant `client_credentials`. */
export interface TestOidcProvider {
  /** Its issuer, `http://127.0.0.1:<port>`. */
  readonly url: string
  readonly clientId: string
  readonly clientSecret: string
  close(): Promise<void>
}

/** Starts it on a free port. It issues tokens for any resource, with these scopes if requested. */
export async function startOidcProvider(scopes: readonly string[]): Promise<TestOidcProvider> {
  const file = fileURLToPath(new URL('../fixtures/oidc-provider.mjs', import.meta.url))
  const child = spawn(process.execPath, [file, scopes.join(' ')], { stdio: ['ignore', 'pipe', 'pipe'] })
  const lines: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => lines.push(line))
  const close = async () => {
    const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null
    child.kill('SIGTERM')
    await ended
  }
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('http://')) continue
    child.stdout.resume()
    return { url: line, clientId: 'agent', clientSecret: 'agent-secret-of-the-tests', close }
  }
  throw new Error(`the identity provider did not start:\n${lines.join('\n')}`)
}
