{{- define "tenure.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tenure.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{ include "tenure.selector" . }}
{{- end }}

{{- define "tenure.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tenure.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}

{{- define "tenure.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "tenure.fullname" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- /* The DSN of an account: (dict "root" $ "account" "owner"). A secret of the chart, if a DSN is given, else the one that exists. */}}
{{- define "tenure.dsn" -}}
{{- $account := index .root.Values.database .account -}}
- name: TENURE_DSN
  valueFrom:
    secretKeyRef:
      {{- if $account.dsn }}
      name: {{ include "tenure.fullname" .root }}-{{ .account }}
      key: dsn
      {{- else }}
      name: {{ required (printf "database.%s: name a secret (existingSecret) or give a dsn" .account) $account.existingSecret }}
      key: {{ $account.key }}
      {{- end }}
{{- end }}

{{- /* Environment of a container: (dict "root" $ "account" "worker"). */}}
{{- define "tenure.env" -}}
env:
  {{- include "tenure.dsn" . | nindent 2 }}
  - name: TENURE_WORKERS_NAME
    valueFrom:
      fieldRef: {fieldPath: metadata.name}
  {{- with .root.Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* What all pods have: account, rights, where images come from. */}}
{{- define "tenure.pod" -}}
serviceAccountName: {{ include "tenure.serviceAccount" . }}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- end }}

{{- /* Where a pod may run: the values of a pool or of the web server. */}}
{{- define "tenure.placement" -}}
{{- range $name := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with index $ $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A job that migrates: (dict "root" $ "phase" "pre" "args" (list ...) "hook" "pre-install,pre-upgrade"). */}}
{{- define "tenure.migration" -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "tenure.fullname" .root }}-migrate-{{ .phase }}
  labels:
    {{- include "tenure.labels" .root | nindent 4 }}
  annotations:
    helm.sh/hook: {{ .hook }}
    helm.sh/hook-weight: "0"
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  backoffLimit: {{ .root.Values.migrate.backoffLimit }}
  template:
    metadata:
      labels:
        {{- include "tenure.selector" .root | nindent 8 }}
        app.kubernetes.io/component: migrate
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- toYaml .root.Values.podSecurityContext | nindent 8 }}
      containers:
        - name: migrate
          image: {{ include "tenure.image" .root }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: {{ toJson .args }}
          {{- include "tenure.env" (dict "root" .root "account" "owner") | nindent 10 }}
          resources:
            {{- toYaml .root.Values.migrate.resources | nindent 12 }}
          securityContext:
            {{- toYaml .root.Values.securityContext | nindent 12 }}
{{- end }}
