import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { parseAllDocuments } from 'yaml'

const CHART = path.resolve(import.meta.dirname, '../../deploy/chart')

/** Helm assumes the Kubernetes version of its build, so the version in `go/go.mod` is passed. */
const KUBE_VERSION = ['--kube-version', '1.34.0']

/** Where the chart is installed. */
export const RELEASE = 'plat'
export const NAMESPACE = 'plat-system'

/** An object as the chart renders it, with what its kind has. */
export interface Rendered {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> }
  readonly spec: Record<string, unknown>
  readonly [member: string]: unknown
}

/** Values of the chart, as a file of the user has them. */
export type Values = Readonly<Record<string, unknown>>

interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The chart, by the Helm at `program`. */
export class Helm {
  readonly #program: string

  constructor(program: string) {
    this.#program = program
  }

  /** A command on the chart with these values. */
  run(command: readonly string[], values: Values, flags: readonly string[] = []): Ran {
    const { status, stdout, stderr } = spawnSync(this.#program, [...command, CHART, '--values', '-', ...flags], {
      encoding: 'utf8',
      input: JSON.stringify(values),
    })
    // Helm warns each time that the definitions are read through a link.
    return { status, stdout, stderr: stderr.replaceAll(/^walk\.go.*\n/gm, '') }
  }

  lint(values: Values): Ran {
    return this.run(['lint'], values, ['--strict', ...KUBE_VERSION])
  }

  /** Every object that is installed; fails where Helm refuses the values. */
  render(values: Values): readonly Rendered[] {
    const { status, stdout, stderr } = this.#template(values)
    assert.equal(status, 0, stderr)
    return parseAllDocuments(stdout)
      .map((document) => document.toJS())
      .filter((object) => object !== null)
  }

  /** Helm's error for values that it must refuse. */
  refusal(values: Values): string {
    const { status, stderr } = this.#template(values)
    assert.notEqual(status, 0, 'Helm takes the values')
    return stderr
  }

  /** A command without the chart, such as `uninstall`. */
  plain(args: readonly string[]): Ran {
    return spawnSync(this.#program, args, { encoding: 'utf8' })
  }

  #template(values: Values): Ran {
    return this.run(['template', RELEASE], values, ['--namespace', NAMESPACE, ...KUBE_VERSION])
  }
}

/** The one object of that kind and name. */
export function objectOf(objects: readonly Rendered[], kind: string, name: string): Rendered {
  const found = objects.filter((one) => one.kind === kind && one.metadata.name === name)
  assert.equal(found.length, 1, `${kind} ${name}`)
  const [object] = found
  assert.ok(object !== undefined)
  return object
}

/** A container of a pod. */
export interface Container {
  readonly command: readonly string[]
  readonly resources: {
    readonly requests: { readonly memory: string }
    readonly limits?: { readonly memory?: string | null }
  }
  readonly args?: readonly string[]
  readonly env: readonly { readonly name: string; readonly value?: string }[]
  readonly volumeMounts?: readonly { readonly mountPath: string; readonly name: string }[]
}

/** The pod that a Deployment, a StatefulSet or a Pod describes. */
export function podOf(object: Rendered): { readonly containers: readonly [Container]; readonly volumes?: object[] } {
  const { template } = Object(object.spec)
  return object.kind === 'Pod' ? Object(object.spec) : Object(template).spec
}
