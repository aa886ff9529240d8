import type { Resource } from '@plat/resources'
import { STDIO_FILES, STDIO_SECRET_PREFIX } from '@plat/resources/stdio-file'
import { stdioFileOf, stdioSecretsOf } from './file.ts'
import { STDIO_PORT, type StdioPlace, stdioCertificateOf, stdioNameOf } from './place.ts'
import { writableFolders } from './problems.ts'

type Server = Resource<'MCPServer'>

/** The label by which Services and NetworkPolicies select the pod of a server. */
export const STDIO_LABEL = 'plat.dev/stdio-server'
/** Digest of the inputs of a pod; a change starts a new one. */
const DIGEST_ANNOTATION = 'plat.dev/stdio-digest'

const RUNTIME_DIR = '/plat/stdio'
const CONFIG_DIR = '/etc/plat-stdio'
/** The user of every pod of plat. */
const USER = 65_532
/** `-r--r-----`: for the group of the pod. */
const GROUP_READ = 0o440
const STOP_SECONDS = 30

const RESOURCES = { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } }
const COPY_RESOURCES = { requests: { cpu: '50m', memory: '64Mi' }, limits: { memory: '256Mi' } }

const CONTAINER_SECURITY = {
  allowPrivilegeEscalation: false,
  privileged: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
} as const

/** An object of a cluster, as it is applied. */
export interface ClusterObject {
  readonly apiVersion: string
  readonly kind: StdioKind
  readonly metadata: { readonly name: string; readonly namespace: string }
}

export type StdioKind = 'ServiceAccount' | 'Secret' | 'NetworkPolicy' | 'Service' | 'Deployment'

/** Everything that belongs to a server, in the order in which it is applied. `digest`: of all that its process depends on. */
export function stdioObjectsOf(
  server: Server,
  place: StdioPlace,
  { home, digest }: { readonly home: string; readonly digest: string },
): readonly ClusterObject[] {
  const name = stdioNameOf(server)
  const { namespace, uid } = server.metadata
  const owner = { apiVersion: server.apiVersion, kind: 'MCPServer', name: server.metadata.name, uid }
  const metadata = {
    name,
    namespace,
    labels: { ...MANAGED, [STDIO_LABEL]: name },
    ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: false }],
  }
  const selector = { [STDIO_LABEL]: name }
  const port = { name: 'mcp', protocol: 'TCP', port: STDIO_PORT }
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata, ...{ automountServiceAccountToken: false } },
    { apiVersion: 'v1', kind: 'Secret', metadata, ...secretContent(server, place) },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata,
      ...{ spec: networkOf(server, { selector, home, gatewayLabels: place.gatewayLabels }) },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      ...{ spec: { type: 'ClusterIP', selector, ports: [{ ...port, targetPort: STDIO_PORT }] } },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      ...{
        spec: {
          // Sessions live in one process: a second pod would not know them.
          replicas: 1,
          revisionHistoryLimit: 2,
          strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
          selector: { matchLabels: selector },
          template: {
            metadata: { labels: { ...MANAGED, ...selector }, annotations: { [DIGEST_ANNOTATION]: digest } },
            spec: podOf(server, place),
          },
        },
      },
    },
  ]
}

const MANAGED = { 'app.kubernetes.io/managed-by': 'plat-operator', 'app.kubernetes.io/part-of': 'plat' } as const

function secretContent(server: Server, place: StdioPlace): object {
  const { certificate, privateKey } = stdioCertificateOf(place, server)
  const files = {
    [STDIO_FILES.server]: JSON.stringify(stdioFileOf(server, place)),
    [STDIO_FILES.certificate]: certificate,
    [STDIO_FILES.key]: privateKey,
  }
  const data = Object.entries(files).map(([file, text]) => [file, Buffer.from(text).toString('base64')])
  return { type: 'Opaque', data: Object.fromEntries(data) }
}

function networkOf(
  { spec: { stdio } }: Server,
  { selector, home, gatewayLabels }: { selector: object; home: string; gatewayLabels: object },
): object {
  const gateway = {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': home } },
    podSelector: { matchLabels: gatewayLabels },
  }
  const isCut = stdio?.isolation?.network === false
  return {
    podSelector: { matchLabels: selector },
    policyTypes: isCut ? ['Ingress', 'Egress'] : ['Ingress'],
    ingress: [{ from: [gateway], ports: [{ protocol: 'TCP', port: STDIO_PORT }] }],
  }
}

function podOf(server: Server, { bridgeImage }: StdioPlace): object {
  const { imagePullSecrets = [] } = server.spec.stdio ?? {}
  const name = stdioNameOf(server)
  const folders = writableFolders(server)
  return {
    serviceAccountName: name,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // The first process of the pod collects processes that servers leave behind.
    shareProcessNamespace: true,
    terminationGracePeriodSeconds: STOP_SECONDS,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER,
      runAsGroup: USER,
      fsGroup: USER,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    ...(imagePullSecrets.length > 0 && { imagePullSecrets: imagePullSecrets.map((secret) => ({ name: secret })) }),
    initContainers: [
      {
        name: 'bridge',
        image: bridgeImage,
        command: ['plat-stdio-copy'],
        args: [`-to=${RUNTIME_DIR}`],
        env: [{ name: 'XDG_CACHE_HOME', value: '/tmp/cache' }],
        resources: COPY_RESOURCES,
        securityContext: CONTAINER_SECURITY,
        volumeMounts: [
          { name: 'bridge', mountPath: RUNTIME_DIR },
          { name: 'tmp', mountPath: '/tmp' },
        ],
      },
    ],
    containers: [containerOf(server, folders)],
    volumes: [
      { name: 'bridge', emptyDir: { sizeLimit: '512Mi' } },
      { name: 'config', secret: { secretName: name, defaultMode: GROUP_READ } },
      { name: 'tmp', emptyDir: { sizeLimit: '1Gi' } },
      ...folders.map((_, index) => ({ name: `writable-${index}`, emptyDir: { sizeLimit: '1Gi' } })),
    ],
  }
}

function containerOf(server: Server, folders: readonly string[]): object {
  const { image, resources } = server.spec.stdio ?? {}
  const health = { httpGet: { path: '/healthz', port: STDIO_PORT, scheme: 'HTTPS' } }
  return {
    name: 'server',
    image,
    // The loader and the libraries are the bridge's own: the image may have others, or none.
    command: [`${RUNTIME_DIR}/loader`, '--library-path', `${RUNTIME_DIR}/lib`, `${RUNTIME_DIR}/node`],
    args: [`${RUNTIME_DIR}/bridge.mjs`, `-folder=${CONFIG_DIR}`, `-port=${STDIO_PORT}`],
    env: [
      { name: 'HOME', value: '/tmp' },
      // Of the image, for its program: they would change the bridge.
      { name: 'NODE_OPTIONS', value: '' },
      { name: 'LD_PRELOAD', value: '' },
      ...stdioSecretsOf(server).map(({ name, secret, key }) => ({
        name: `${STDIO_SECRET_PREFIX}${name}`,
        valueFrom: { secretKeyRef: { name: secret, key } },
      })),
    ],
    ports: [{ name: 'mcp', containerPort: STDIO_PORT, protocol: 'TCP' }],
    startupProbe: { ...health, periodSeconds: 1, failureThreshold: 60 },
    livenessProbe: { ...health, periodSeconds: 10, timeoutSeconds: 5 },
    readinessProbe: { ...health, periodSeconds: 2, timeoutSeconds: 2 },
    resources: resources ?? RESOURCES,
    securityContext: CONTAINER_SECURITY,
    volumeMounts: [
      { name: 'bridge', mountPath: RUNTIME_DIR, readOnly: true },
      { name: 'config', mountPath: CONFIG_DIR, readOnly: true },
      { name: 'tmp', mountPath: '/tmp' },
      ...folders.map((mountPath, index) => ({ name: `writable-${index}`, mountPath })),
    ],
  }
}
