import { postBytes } from '../harness/client.ts'
import { cpuPerRequest, type Traffic } from '../harness/load.ts'
import { BROKER_TOKEN, makeKeys, NAME, startIdentity, startOwn, withServers } from '../harness/plat.ts'
import { type BenchCase, row } from '../harness/report.ts'

/** `POST /v1/token` with Ed25519 against a bare mint of the same tokens, and against a certified OpenID provider. */
export const mint: BenchCase = {
  name: 'mint',
  async run({ dir, effort }) {
    const keys = await makeKeys(dir)
    const cpu = await withServers(async (keep) => {
      const floor = await keep(startOwn(dir, 'bare-broker.ts', keys.keyPath))
      const ours = await keep(startIdentity(dir, keys))
      const peer = await keep(startOwn(dir, 'oidc.mjs'))
      return cpuPerRequest(
        {
          floor: { server: floor, traffic: mintTraffic },
          ours: { server: ours, traffic: mintTraffic },
          peer: { server: peer, traffic: clientCredentials },
        },
        effort,
      )
    })
    const rate = (name: 'floor' | 'ours' | 'peer') => (1000 / cpu.micros(name)).toFixed(2)
    const figures = `ours ${rate('ours')} k/s per core, bare ${rate('floor')}, oidc-provider ${rate('peer')}`
    return [
      row({
        what: 'mints over bare mint',
        value: cpu.over('floor', 'ours'),
        unit: '×',
        target: ['≥', 0.75],
        detail: figures,
      }),
      row({ what: 'mints over oidc-provider', value: cpu.over('peer', 'ours'), unit: '×', detail: '' }),
    ]
  },
}

const headers = { authorization: `Bearer ${BROKER_TOKEN}`, 'content-type': 'application/json' }
const fields = { ...NAME, user: 'alice', scopes: ['tools:notes', 'model'], tier: 'tier-0', ttlSeconds: 900 }
const request = postBytes('/v1/token', headers, JSON.stringify(fields))

const mintTraffic: Traffic = {
  request: () => request,
  isRight: ({ status, body }) => status === 200 && body.includes('"token":"ey'),
}

const grant = Buffer.from('grant_type=client_credentials&scope=tools')
const credentials = Buffer.from('bench:bench-secret').toString('base64')
const grantHead = `POST /token HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/x-www-form-urlencoded\r\nauthorization: Basic ${credentials}\r\ncontent-length: ${grant.length}\r\n\r\n`
const grantRequest = Buffer.concat([Buffer.from(grantHead), grant])

/** Request to a provider's token endpoint: client credentials. */
export const clientCredentials: Traffic = {
  request: () => grantRequest,
  isRight: ({ status, body }) => status === 200 && body.includes('"access_token":"ey'),
}
