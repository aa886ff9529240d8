import type { FlagTable, FlagValues } from '@plat/config'
import { INTEL_QE_SIGNER } from './tee/tdx.ts'

const group = 'Proof checks'
const DAY_MS = 24 * 60 * 60 * 1000
/** Where a pod finds what it needs to speak to the API server. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'
/** The audience that every credential of a proof must be made for. */
const AUDIENCE = 'plat-identity'

/** Flags of the proof checks: every trust anchor, audience and endpoint of a check has one. */
export const proofFlags = {
  'identity-checks': {
    type: 'list',
    group,
    help: 'Proof checks that are enabled: spiffe, kubernetes, gcp-identity, aws-iid, azure-imds, tee.',
  },
  'sandbox-check': { type: 'list', group, help: 'Sandbox drivers whose signed statements are proofs, by name.' },
  'sandbox-keys': { type: 'list', group, help: 'Public keys of each driver: <driver>=<file>, PEM or JWKS.' },
  'sandbox-audience': { type: 'string', default: AUDIENCE, group, help: 'Audience of the statements.' },
  'spiffe-bundles': {
    type: 'list',
    group,
    help: 'SPIFFE bundles of the trust domains that are trusted: <trust domain>=<file or URL>.',
  },
  'spiffe-audience': { type: 'string', default: AUDIENCE, group, help: 'Audience of JWT-SVIDs.' },
  'spiffe-ids': {
    type: 'list',
    default: ['spiffe://*/ns/{namespace}/sa/*'],
    group,
    help: 'SPIFFE IDs that may prove: * for any text; {namespace}, {agent}, {session} are those of the mint.',
  },
  'kubernetes-api': {
    type: 'string',
    default: 'https://kubernetes.default.svc',
    group,
    help: 'URL of the Kubernetes API server.',
  },
  'kubernetes-ca-file': {
    type: 'string',
    default: `${SERVICE_ACCOUNT}/ca.crt`,
    group,
    help: 'CA certificates of the API server, PEM.',
  },
  'kubernetes-token-file': {
    type: 'string',
    default: `${SERVICE_ACCOUNT}/token`,
    group,
    help: 'Token that the broker presents to the API server; read for each request.',
  },
  'kubernetes-audience': { type: 'string', default: AUDIENCE, group, help: 'Audience of projected tokens.' },
  'kubernetes-service-accounts': {
    type: 'list',
    default: ['*/*'],
    group,
    help: 'Service accounts that may prove: <namespace>/<name>, * for any text.',
  },
  'kubernetes-isolation': {
    type: 'list',
    default: ['gvisor=gvisor', 'kata=kata'],
    group,
    help: 'What runtime classes isolate by: <runtime class>=<isolation>.',
  },
  'gcp-identity-keys': {
    type: 'string',
    default: 'https://www.googleapis.com/oauth2/v3/certs',
    group,
    help: 'Key set of the issuer: a URL or file.',
  },
  'gcp-identity-issuer': {
    type: 'string',
    default: 'https://accounts.google.com',
    group,
    help: 'Issuer of instance identity tokens.',
  },
  'gcp-identity-audience': {
    type: 'string',
    default: AUDIENCE,
    group,
    help: 'Audience of instance identity tokens, before a slash and the nonce.',
  },
  'gcp-identity-projects': {
    type: 'list',
    group,
    help: 'Projects that may prove: <project> or <project>=<namespace>.',
  },
  'aws-iid-certificates': {
    type: 'string',
    group,
    help: 'Folder of the certificates that AWS publishes for its regions, <region>.pem. Default: shipped.',
  },
  'aws-iid-accounts': { type: 'list', group, help: 'Accounts that may prove: <account> or <account>=<namespace>.' },
  'aws-iid-window': {
    type: 'duration',
    default: DAY_MS,
    min: 1000,
    max: 365 * DAY_MS,
    group,
    help: 'How long after its launch an instance may prove; it proves one session.',
  },
  'azure-imds-roots': {
    type: 'string',
    group,
    help: 'Roots above the signers of attested documents, PEM. Default: pinned.',
  },
  'azure-imds-issuers': {
    type: 'string',
    default: 'http://www.microsoft.com',
    group,
    help: 'The one origin that certificates of issuers are fetched from.',
  },
  'azure-imds-subscriptions': {
    type: 'list',
    group,
    help: 'Subscriptions that may prove: <subscription> or <subscription>=<namespace>.',
  },
  'tee-measurements': {
    type: 'list',
    group,
    help: 'What may prove once launched: sev-snp:<hex> or tdx:<hex>, each also with =<namespace>.',
  },
  'tee-snp-roots': { type: 'string', group, help: 'Authorities of AMD (ARK, ASK, ASVK), PEM. Default: shipped.' },
  'tee-tdx-roots': {
    type: 'string',
    group,
    help: 'Root of Intel for provisioning certificates, PEM. Default: shipped.',
  },
  'tee-tdx-qe-signer': {
    type: 'string',
    default: INTEL_QE_SIGNER,
    group,
    help: 'Signer of the quoting enclave (MRSIGNER), hexadecimal.',
  },
  'tee-snp-min-tcb': {
    type: 'list',
    group,
    help: 'Lowest patch levels of SEV-SNP: <component>=<level>, with bootloader, tee, snp, microcode, fmc.',
  },
  'tee-snp-allow-migration-agent': {
    type: 'bool',
    group,
    help: 'Accept SEV-SNP machines that a migration agent may move (MIGRATE_MA).',
  },
  'tee-snp-crls': { type: 'list', group, help: 'Revocation lists of AMD, PEM or DER: files or URLs.' },
  'tee-tdx-allow-sept-ve': { type: 'bool', group, help: 'Accept TDX machines without SEPT_VE_DISABLE.' },
  'tee-tdx-crls': {
    type: 'list',
    group,
    help: 'Revocation lists of Intel (root and PCK), PEM or DER: files or URLs.',
  },
  'tee-tdx-tcb-info': { type: 'list', group, help: 'TCB info of Intel, JSON with its signature: files or URLs.' },
  'tee-tdx-tcb-signer': {
    type: 'string',
    group,
    help: 'Certificates of the signer of the TCB info, PEM. Required with -tee-tdx-tcb-info.',
  },
  'tee-tdx-tcb-statuses': {
    type: 'list',
    default: ['UpToDate', 'SWHardeningNeeded'],
    group,
    help: 'Statuses of the TCB info that may prove; never Revoked.',
  },
  'tee-collateral-max-age': {
    type: 'duration',
    default: 0,
    min: 0,
    max: 365 * DAY_MS,
    group,
    help: 'Longest time since a revocation list or TCB info was issued; 0: until its own nextUpdate.',
  },
} as const satisfies FlagTable

export type ProofFlagValues = FlagValues<typeof proofFlags>
