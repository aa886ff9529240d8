import { jurisdictionOfEndpoint } from '@plat/resources/regions/endpoint'
import type { KeyAddresses, Posture } from './posture.ts'

/** Returns the configured key sets and token endpoints whose jurisdiction is unknown. */
export function unplacedEndpoints(config: Posture): readonly string[] {
  const { endpointJurisdictions: stated } = config
  return endpointsOf(config).filter((url) => URL.canParse(url) && jurisdictionOfEndpoint(new URL(url), stated) === '')
}

function endpointsOf({ identity, adminAuth, tokenExchangeURL, tokenVault, ciba, notifiers }: Posture): string[] {
  return [
    // Without `jwksURL` the broker's keys are files, and nothing is fetched from its issuer.
    identity.jwksURL,
    ...identity.trustedIssuers.flatMap(keysOf),
    ...(adminAuth.mode === 'token' ? [] : keysOf(adminAuth.oidc)),
    tokenExchangeURL,
    ...(tokenVault.enabled ? vaultEndpoints(tokenVault) : []),
    ...(ciba.enabled ? [ciba.issuer, ciba.backchannelAuthenticationEndpoint, ciba.tokenEndpoint, ciba.jwksURL] : []),
    ...notifiers.flatMap(({ callbackOIDC }) => [callbackOIDC.discoveryURL, ...keysOf(callbackOIDC)]),
  ]
}

function vaultEndpoints({ login, providers }: Posture['tokenVault']): string[] {
  const ofProviders = providers.flatMap(({ issuer, tokenURL, revocationURL, idJag }) => {
    return [issuer, tokenURL, revocationURL, idJag.idpTokenURL]
  })
  return [login.issuer, login.tokenURL, login.jwksURL, ...ofProviders]
}

function keysOf({ issuer, jwksURL }: KeyAddresses): string[] {
  return [jwksURL || issuer]
}
