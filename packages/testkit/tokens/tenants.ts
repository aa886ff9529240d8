import { ephemeralSigner, type LocalSigner } from '@plat/keys'

/** A key document as a broker with tenants publishes it: one key each, and one of the broker itself under the name `''`. */
export interface TestTenants {
  readonly signers: Readonly<Record<string, LocalSigner>>
  readonly document: object
}

/** Makes a key for the broker and for each tenant, and the document that binds them to namespaces. */
export function testTenants(namespaces: Readonly<Record<string, readonly string[]>>): TestTenants {
  const signers = Object.fromEntries(['', ...Object.keys(namespaces)].map((name) => [name, ephemeralSigner()]))
  const keys = Object.entries(signers).map(([name, { publicJwk, kid }]) => ({
    ...publicJwk,
    kid,
    use: 'sig',
    alg: 'EdDSA',
    ...(name !== '' && { plat_tenant: name }),
  }))
  return { signers, document: { keys, plat_tenants: namespaces } }
}
