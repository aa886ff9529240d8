import type { CloudConfig } from './cloud.ts'

/** `cloudCredentials` as it stands when nobody configures it. */
export const noClouds: CloudConfig = {
  aws: { region: '', imds: false, partitionDNSSuffix: '', stsEndpoint: '' },
  azure: { managedIdentity: false, identityBinding: false },
  gcp: { metadataHost: '' },
}
