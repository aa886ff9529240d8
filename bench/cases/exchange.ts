import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { postBytes } from '../harness/client.ts'
import { cpuPerRequest, type Traffic } from '../harness/load.ts'
import { makeKeys, NAME, sessionToken, startIdentity, startOwn, withServers } from '../harness/plat.ts'
import { type BenchCase, row } from '../harness/report.ts'
import { clientCredentials } from './mint.ts'

/** Tokens that a run cycles through: more than a verifier caches, so that each exchange verifies and signs. */
const COLD_TOKENS = 30_000
const AUDIENCE = 'bench-tools'

/** `POST /v1/exchange` of tokens that were not seen before, against a bare verification and signature, and against a provider's token endpoint. */
export const exchange: BenchCase = {
  name: 'exchange',
  async run({ dir, effort }) {
    const keys = await makeKeys(dir)
    const config = path.join(dir, 'exchange.json')
    const audience = { maxTTLSeconds: 300, allowedScopes: ['tools:notes'], allowedNamespaces: [NAME.namespace] }
    writeFileSync(config, JSON.stringify({ audiences: { [AUDIENCE]: audience } }))
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const requests = Array.from({ length: COLD_TOKENS }, () =>
      postBytes('/v1/exchange', form, formOf(sessionToken(keys.signer))),
    )
    const traffic: Traffic = {
      request: (n) => requests[n % COLD_TOKENS] ?? Buffer.alloc(0),
      isRight: ({ status, body }) => status === 200 && body.includes('"access_token":"ey'),
    }
    const cpu = await withServers(async (keep) => {
      const floor = await keep(startOwn(dir, 'bare-broker.ts', keys.keyPath))
      const ours = await keep(startIdentity(dir, keys, ['-exchange-config', config]))
      const peer = await keep(startOwn(dir, 'oidc.mjs'))
      return cpuPerRequest(
        {
          floor: { server: floor, traffic },
          ours: { server: ours, traffic },
          peer: { server: peer, traffic: clientCredentials },
        },
        effort,
      )
    })
    const rate = (name: 'floor' | 'ours' | 'peer') => (1000 / cpu.micros(name)).toFixed(2)
    const detail = `ours ${rate('ours')} k/s per core, bare ${rate('floor')}, oidc-provider ${rate('peer')}`
    const value = cpu.over('floor', 'ours')
    return [
      row({ what: 'exchanges over bare, cold', value, unit: '×', target: ['≥', 0.85], detail }),
      row({ what: 'exchanges over oidc-provider', value: cpu.over('peer', 'ours'), unit: '×', detail: '' }),
    ]
  },
}

function formOf(token: string): string {
  return new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: token,
    audience: AUDIENCE,
  }).toString()
}
