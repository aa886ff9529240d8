import { constants, generateKeyPairSync, type KeyObject, privateDecrypt, publicEncrypt, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import type { JsonObject } from '@plat/core'
import { closed, listening } from '@plat/testkit/local'
import { signDigest } from './digest.ts'
import type { Fault } from './kms-server.ts'

export const VAULT_TOKEN = 'token-of-entra'

interface Version {
  readonly id: string
  readonly pair: { readonly publicKey: KeyObject; readonly privateKey: KeyObject }
  enabled: boolean
}

/** The part of Azure Key Vault that plat uses, as its REST reference documents it, with a token endpoint and faults on request. */
export class AzureServer {
  readonly requests: string[] = []
  readonly faults: Fault[] = []
  readonly keys = new Map<string, Version[]>()
  url = ''

  /** Adds a version of a key; the last one is current. */
  add(name: string, type: 'EC' | 'EC-384' | 'RSA'): Version {
    const pair =
      type === 'RSA'
        ? generateKeyPairSync('rsa', { modulusLength: 2048 })
        : generateKeyPairSync('ec', { namedCurve: type === 'EC' ? 'P-256' : 'P-384' })
    const version = { id: randomBytes(16).toString('hex'), pair, enabled: true }
    this.keys.set(name, [...(this.keys.get(name) ?? []), version])
    return version
  }

  uri(name: string, version?: string): string {
    return `azurekv://tests/${name}${version === undefined ? '' : `/${version}`}`
  }

  /** The response, or status and code of an error. */
  answer(path: string, body: JsonObject): JsonObject | readonly [number, string] {
    const [, , name = '', id = '', operation] = path.split('/')
    const versions = this.keys.get(name) ?? []
    const version = id === '' ? versions.at(-1) : versions.find((one) => one.id === id)
    if (version === undefined) return [404, 'KeyNotFound']
    const kid = `https://tests.vault.azure.net/keys/${name}/${version.id}`
    const { publicKey, privateKey } = version.pair
    if (operation === undefined)
      return { key: { ...publicKey.export({ format: 'jwk' }), kid }, attributes: { enabled: version.enabled } }
    if (!version.enabled) return [403, 'Forbidden']
    const value = Buffer.from(String(body.value), 'base64url')
    const done = (bytes: Buffer) => ({ kid, value: bytes.toString('base64url') })
    const oaep = { oaepHash: 'sha256', padding: constants.RSA_PKCS1_OAEP_PADDING }
    if (operation === 'sign') return done(signDigest(value, privateKey))
    if (operation === 'wrapkey') return done(publicEncrypt({ key: publicKey, ...oaep }, value))
    try {
      return done(privateDecrypt({ key: privateKey, ...oaep }, value))
    } catch {
      return [400, 'BadParameter']
    }
  }
}

export async function startAzure(t: TestContext): Promise<AzureServer> {
  const azure = new AzureServer()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    const { pathname, searchParams } = new URL(request.url ?? '', azure.url)
    if (pathname.endsWith('/oauth2/v2.0/token')) {
      const scope = new URLSearchParams(text).get('scope')
      const isVault = scope === 'https://vault.azure.net/.default'
      return response.end(JSON.stringify({ access_token: isVault ? VAULT_TOKEN : 'another', expires_in: 3600 }))
    }
    azure.requests.push(pathname)
    const fault = azure.faults.shift() ?? null
    if (fault === 'hang') return undefined
    if (fault === 'cut') return request.socket.destroy()
    const fail = (status: number, code: string) =>
      response.writeHead(status, { 'retry-after': '0' }).end(JSON.stringify({ error: { code, message: text } }))
    if (fault !== null && typeof fault !== 'function') return fail(fault.status, fault.code)
    if (request.headers.authorization !== `Bearer ${VAULT_TOKEN}`) return fail(401, 'Unauthorized')
    if (searchParams.get('api-version') !== '7.4') return fail(400, 'BadParameter')
    const answer = azure.answer(pathname, text === '' ? {} : JSON.parse(text))
    if (Array.isArray(answer)) return fail(answer[0], answer[1])
    return response.end(JSON.stringify(fault === null ? answer : fault({ ...answer })))
  })
  azure.url = `http://127.0.0.1:${await listening(server)}`
  t.after(() => {
    server.closeAllConnections()
    return closed(server)
  })
  return azure
}
