import type { CloudConfig } from './cloud.ts'

/** Defaults of `cloudCredentials`. */
export const noClouds: CloudConfig = {
  aws: { region: '', imds: false, partitionDNSSuffix: '', stsEndpoint: '' },
  azure: { managedIdentity: false, identityBinding: false },
  gcp: { metadataHost: '' },
}
