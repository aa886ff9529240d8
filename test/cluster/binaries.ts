import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import path from 'node:path'

const MODULE = path.join(import.meta.dirname, 'go')
const CACHE = path.resolve(import.meta.dirname, '../../node_modules/.cache/plat-cluster')
/** The version that `go/go.mod` requires; without the last two, the server panics at start. */
const VERSION = { gitVersion: 'v1.34.10', gitMajor: '1', gitMinor: '34' } as const
const PACKAGES = ['k8s.io/kubernetes/cmd/kube-apiserver', 'go.etcd.io/etcd/server/v3'] as const
/** The definitions of Sandbox and SandboxClaim, read at test time. */
const SANDBOX_MODULE = 'sigs.k8s.io/agent-sandbox@v0.5.3'
const SANDBOX_SUM = 'h1:v3G2V0MwN0h+S973PV9swg2l8vIfW7eEGVPziWymTUc='

/** The definitions of VolumeSnapshots, read at test time. */
const SNAPSHOT_MODULE = 'github.com/kubernetes-csi/external-snapshotter/client/v8@v8.6.0'
const SNAPSHOT_SUM = 'h1:FtGewu2k6HWw6evLGXY8JqUZ9eHpti1kd3e4amj+ilA='

/** kubectl, from a separate module: it changes more often than the server's. */
const KUBECTL_MODULE = path.join(import.meta.dirname, 'kubectl')

/** Helm, built as its module says. */
const HELM_MODULE = 'helm.sh/helm/v3@v3.22.0'
const HELM_SUM = 'h1:n1if5iQgHYsujPAcO5oonH/KiSNUmqmUF0iGVjSF3AU='
const HELM_PACKAGE = 'helm.sh/helm/v3/cmd/helm@v3.22.0'
/** The definitions of PrometheusRule and ServiceMonitor, read at test time; the public checksum database does not have it. */
const PROMETHEUS_MODULE = 'github.com/prometheus-operator/prometheus-operator@v0.86.1'
const PROMETHEUS_SUM = 'h1:pHUuiRErcFb3nFDox7RxoxpEN0FyT24GtYOkr2GBu04='

/** Go settings of the suite. */
export interface Binaries {
  readonly apiServer: string
  readonly etcd: string
  readonly helm: string
  readonly kubectl: string
  /** Folder of agent-sandbox's CustomResourceDefinitions. */
  readonly crds: string
  /** Folder of the Prometheus Operator's. */
  readonly monitoringCrds: string
  /** Folder of external-snapshotter's. */
  readonly snapshotCrds: string
}

/** Builds what is not in the cache; the first build takes some minutes. A text says in one line what is missing. */
export function buildBinaries(tell: (line: string) => void): Binaries | string {
  const version = go(['env', 'GOVERSION'])
  if (!version.ok) return 'Go is not installed'
  const sandbox = downloaded(SANDBOX_MODULE, SANDBOX_SUM)
  if (!sandbox.ok) return sandbox.text
  const prometheus = downloaded(PROMETHEUS_MODULE, PROMETHEUS_SUM, { GONOSUMDB: 'github.com/prometheus-operator/*' })
  if (!prometheus.ok) return prometheus.text
  const snapshots = downloaded(SNAPSHOT_MODULE, SNAPSHOT_SUM)
  if (!snapshots.ok) return snapshots.text
  const helm = buildHelm(tell)
  if (!helm.ok) return helm.text
  const kubectl = buildKubectl(tell)
  if (!kubectl.ok) return kubectl.text
  const dir = path.join(CACHE, keyOf(MODULE))
  if (!existsSync(dir)) {
    tell(`building kube-apiserver ${VERSION.gitVersion} and etcd with ${version.text}: some minutes, once`)
    const built = build(dir)
    if (!built.ok) return `kube-apiserver and etcd cannot be built: ${built.text}`
  }
  return {
    apiServer: path.join(dir, 'kube-apiserver'),
    etcd: path.join(dir, 'server'),
    helm: helm.text,
    kubectl: kubectl.text,
    crds: path.join(sandbox.text, 'k8s/crds'),
    monitoringCrds: path.join(prometheus.text, 'example/prometheus-operator-crd'),
    snapshotCrds: path.join(snapshots.text, 'config/crd'),
  }
}

/** Names what is built of a module. */
function keyOf(module: string): string {
  const key = createHash('sha256').update(JSON.stringify(VERSION))
  for (const file of ['go.mod', 'go.sum']) key.update(readFileSync(path.join(module, file)))
  return key.digest('hex').slice(0, 16)
}

function buildKubectl(tell: (line: string) => void): Ran {
  const dir = path.join(CACHE, `kubectl-${keyOf(KUBECTL_MODULE)}`)
  const file = path.join(dir, 'kubectl')
  if (existsSync(file)) return { ok: true, text: file }
  tell(`building kubectl ${VERSION.gitVersion}: a minute or two, once`)
  const partial = `${dir}.${process.pid}`
  mkdirSync(partial, { recursive: true })
  const args = ['build', '-C', KUBECTL_MODULE, ...flagsOf(), '-o', path.join(partial, 'kubectl'), '.']
  const built = go(args, { CGO_ENABLED: '0' })
  if (!built.ok) return { ok: false, text: `kubectl cannot be built: ${built.text}` }
  renameSync(partial, dir)
  return { ok: true, text: file }
}

function flagsOf(): readonly string[] {
  const values = Object.entries(VERSION).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
  return ['-p', '1', '-trimpath', '-ldflags', `-s -w ${values.join(' ')}`]
}

/** Into a folder beside it first: what was interrupted is never taken for whole. */
function build(dir: string): Ran {
  const partial = `${dir}.${process.pid}`
  mkdirSync(partial, { recursive: true })
  const built = go(['build', ...flagsOf(), '-o', `${partial}/`, ...PACKAGES], { CGO_ENABLED: '0' })
  if (built.ok) renameSync(partial, dir)
  return built
}

/** A version has one name in the cache, so what is there is what was built of it. */
export function buildHelm(tell: (line: string) => void): Ran {
  const module = downloaded(HELM_MODULE, HELM_SUM)
  if (!module.ok) return module
  const dir = path.join(CACHE, HELM_MODULE.replaceAll('/', '_'))
  const file = path.join(dir, 'helm')
  if (existsSync(file)) return { ok: true, text: file }
  tell(`building ${HELM_MODULE}: a minute or two, once`)
  const partial = `${dir}.${process.pid}`
  mkdirSync(partial, { recursive: true })
  const built = go(['install', '-p', '1', '-trimpath', HELM_PACKAGE], { CGO_ENABLED: '0', GOBIN: partial })
  if (!built.ok) return { ok: false, text: `Helm cannot be built: ${built.text}` }
  renameSync(partial, dir)
  return { ok: true, text: file }
}

/** The folder of a module, whose checksum is the one that was read. */
function downloaded(module: string, sum: string, env: Readonly<Record<string, string>> = {}): Ran {
  const answer = go(['mod', 'download', '-json', module], env)
  if (!answer.ok) return { ok: false, text: `${module} cannot be downloaded: ${answer.text}` }
  const { Dir, Sum }: { Dir: string; Sum: string } = JSON.parse(answer.text)
  if (Sum !== sum) return { ok: false, text: `${module} has another checksum than was read` }
  return { ok: true, text: Dir }
}

interface Ran {
  readonly ok: boolean
  /** Output of the command; rejects with the last line of stderr. */
  readonly text: string
}

function go(args: readonly string[], env: Readonly<Record<string, string>> = {}): Ran {
  const { status, stdout, stderr, error } = spawnSync('go', args, {
    cwd: MODULE,
    encoding: 'utf8',
    env: { ...process.env, ...env },
    maxBuffer: 64 * 1024 * 1024,
  })
  if (error === undefined && status === 0) return { ok: true, text: stdout.trim() }
  return { ok: false, text: error?.message ?? stderr.trim().split('\n').at(-1) ?? `status ${status}` }
}
