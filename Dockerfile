# sheetgen with Pango, for machines without Python: docker run --rm -v "$PWD:/work" IMAGE build --models 8b,70b
FROM python:3.13-slim-bookworm

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --no-install-recommends --yes libpangoft2-1.0-0 libharfbuzz-subset0 \
    && rm -rf /var/lib/apt/lists/*

COPY pyproject.toml README.md LICENSE /src/
COPY sheetgen /src/sheetgen
COPY catalogs /src/catalogs
COPY templates /src/templates
RUN pip install --no-cache-dir /src \
    && rm -rf /src \
    && useradd --create-home --uid 1000 sheetgen

USER 1000
WORKDIR /work
ENTRYPOINT ["sheetgen"]
CMD ["--help"]
