export type { HttpClient } from './client/client.ts'
export { MalformedResponseError } from './client/head.ts'
export type { ClientRequest, RequestHeaders, StreamedBody } from './client/request.ts'
export type { Receiver, Sending } from './client/transfer.ts'
export { type AddressCheck, createAddressCheck, createRangeCheck, isAddressRange } from './dial/addresses.ts'
export { createDialer, type Dialer, type DialerOptions, type DialOptions } from './dial/dialer.ts'
export {
  BlockedAddressError,
  type DialFault,
  dialFault,
  isDialError,
  isUnsent,
  ResidencyDeniedError,
  ResponseTooLargeError,
} from './dial/errors.ts'
export type { Fetched, FetchedHead, FetchOptions } from './dial/fetch-bytes.ts'
export type { Residency } from './dial/guard.ts'
export type { Lookup } from './dial/name-lookups.ts'
export type { AddressPolicy, Purpose } from './dial/purpose.ts'
export { joinedBundles, type TrustOptions } from './dial/trust.ts'
export { type ListenAddress, parseAddress } from './serve/address.ts'
export {
  type BodyAccount,
  type BodyFault,
  type BodySource,
  collectBody,
  type ReadBodyOptions,
  readBody,
} from './serve/body.ts'
export { peerFlags, peerProblems } from './serve/connections/flags.ts'
export type { PeerOptions } from './serve/connections/limit.ts'
export { peerOf } from './serve/connections/peers.ts'
export { faults, type HttpFault, type RenderFault, renderFault } from './serve/errors.ts'
export { isLoopbackAddress, isLoopbackHost } from './serve/head.ts'
export { defaultLimits, type ListenLimits } from './serve/limits.ts'
export {
  type Exchange,
  type Listener,
  type ListenOptions,
  listen,
  type RawRoute,
  type TunnelRequest,
} from './serve/listen.ts'
export { mountProbes, type Probes } from './serve/probes.ts'
export type { TlsOptions } from './serve/tls.ts'
export { isUpgradable, takeUpgrade, type UpgradedConnection } from './serve/upgrade.ts'
export { type AwsCredentials, type AwsRequest, awsCredentialsOf, signAws } from './sign/aws.ts'
export { assumeRoleForm, awsDomain, stsOrigin } from './sign/aws-endpoints.ts'
export { type OciKey, type OciRequest, signOci } from './sign/oci.ts'
