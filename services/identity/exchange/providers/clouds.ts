import type { CredentialProvider } from '../provider.ts'
import { awsSts } from './aws-sts.ts'
import { azureEntra } from './azure-entra.ts'
import type { CloudParts } from './cloud.ts'
import { gcpSts } from './gcp-sts.ts'

/** The credential providers that the contract names (docs/spec/broker-api.md, "Exchange configuration file"). */
export function cloudProviders(parts: CloudParts): readonly CredentialProvider[] {
  return [awsSts(parts), gcpSts(parts), azureEntra(parts)]
}
