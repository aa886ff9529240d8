import { generateKeyPairSync } from 'node:crypto'
import Provider from 'oidc-provider'
import { serve } from './body.ts'

/** A peer: the certified OpenID provider, handing out Ed25519 access tokens for client credentials. */
const { privateKey } = generateKeyPairSync('ed25519')
const resource = 'urn:plat:bench'
const client = {
  client_id: 'bench',
  client_secret: 'bench-secret',
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
  id_token_signed_response_alg: 'EdDSA',
}
const provider = new Provider('http://127.0.0.1', {
  clients: [client],
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'EdDSA', kid: 'bench' }] },
  features: {
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      getResourceServerInfo: () => ({
        scope: 'tools',
        audience: resource,
        accessTokenTTL: 900,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'EdDSA' } },
      }),
    },
  },
})

serve(provider.callback())
