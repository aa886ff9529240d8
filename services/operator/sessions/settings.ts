export interface SandboxSettings {
  /** URL of the gateway as pods reach it, without a slash at the end. */
  readonly gatewayUrl: string
  /** URL of the attestation service as pods reach it, without a slash at the end; empty: attested sessions get no release here. */
  readonly attestationUrl: string
  /** Quantity: size of the workspace of the profile `codeInterpreter` where the Agent names none (docs/spec/crds.md). */
  readonly workspaceSize: string
  /** Image of the sidecar of the profile `browser`; empty: no session has it. */
  readonly browserImage: string
  /** Labels of the gateway's pods, in the operator's namespace; none: no session has a live view. */
  readonly gatewayLabels: Readonly<Record<string, string>>
  /** Image of the sidecar of the profile `codeInterpreter`; empty: no session has it. */
  readonly codeInterpreterImage: string
}
