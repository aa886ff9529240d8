import { buildInfo } from '@plat/core'
import { createGatewayMetrics, type GatewayMetrics } from '../metrics.ts'

export interface RecordedMetrics {
  readonly metrics: GatewayMetrics
  /** Every change in order: `<name> <label values> <value>`, for a counter that rises by one without the value. */
  readonly changes: readonly string[]
  /** The changes of one metric without its name; the list grows with them. */
  of(name: string): string[]
}

/** The registry of a gateway, which also keeps the order of its changes. `onChange` is called with each. */
export function recordedMetrics(onChange: (name: string, change: string) => void = () => {}): RecordedMetrics {
  const changes: string[] = []
  const byName = new Map<string, string[]>()
  const of = (name: string) => {
    const known = byName.get(name) ?? []
    byName.set(name, known)
    return known
  }
  const record = (name: string, [labels = {}, ...values]: readonly unknown[]) => {
    const change = [...Object.values(Object(labels)), ...values].join(' ')
    changes.push(`${name} ${change}`)
    of(name).push(change)
    onChange(name, change)
  }
  const metrics = new Proxy(testMetrics(), {
    get(registry, kind) {
      const member: unknown = Reflect.get(registry, kind)
      if (typeof member !== 'function' || kind === 'expose') return member
      return (name: string) => recorded(member(name), (args) => record(name, args))
    },
  })
  return { metrics, changes, of }
}

/** The registry of a gateway with nothing but defaults. */
export function testMetrics(): GatewayMetrics {
  return createGatewayMetrics(buildInfo('gateway'), {})
}

function recorded(series: object, record: (args: readonly unknown[]) => void): object {
  return new Proxy(series, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key)
      if (typeof member !== 'function') return member
      return (...args: readonly unknown[]) => {
        if (key === 'inc' || key === 'set' || key === 'observe') record(args)
        const result: unknown = Reflect.apply(member, target, args)
        return key === 'labels' ? recorded(Object(result), (rest) => record([args[0], ...rest])) : result
      }
    },
  })
}
